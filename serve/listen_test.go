package serve_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestAnAddressThatIsTakenIsToldOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := engine.New(engine.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	err = serve.New(s, serve.Options{Address: taken.Addr().String()}).Run(t.Context())
	if err == nil || strings.Count(err.Error(), "listen") != 1 {
		t.Errorf("got %v", err)
	}
}

func TestTheOperatorsFileMayNameASocket(t *testing.T) {
	folder, err := os.MkdirTemp("", "mcpd") // whose path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	s, err := engine.New(engine.Options{
		Name: "test", Tools: fstest.MapFS{},
		Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "listen {\n  unix = %q\n}\n", path), Mode: 0o644}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var at net.Addr
	err = serve.New(s, serve.Options{OnListen: func(a net.Addr) {
		at = a
		stop()
	}}).Run(ctx)
	if err != nil || at == nil || at.String() != path || at.Network() != "unix" {
		t.Errorf("it listens at %v, %v", at, err)
	}
}

// addressChecks looks at the address, and not at the files of the auth blocks.
type addressChecks struct{ withoutTLS }

func (addressChecks) CheckAuth([]engine.Auth) error { return nil }

// withoutTLS does not look at the files of a tls block.
type withoutTLS struct{ serve.Checks }

func (withoutTLS) CheckTLS(engine.ListenTLS) error { return nil }

// TestAnEditThatOpensTheAddressIsRefused, be it of the address or of what guards it.
func TestAnEditThatOpensTheAddressIsRefused(t *testing.T) {
	const guarded = "listen {\n  address = \"0.0.0.0:8443\"\n  tls {\n    cert_file = \"c\"\n    key_file  = \"k\"\n  }\n}\n"
	const keys = "auth \"api_key\" \"people\" {}\n"
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte(guarded + keys), Mode: 0o644}}
	s, err := engine.New(engine.Options{Name: "test", Config: config, Front: addressChecks{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if report, err := s.Load(t.Context()); err != nil {
		t.Fatal(report.Problems)
	}
	revision := s.Snapshot().Revision()
	for _, edit := range []struct{ text, where string }{
		{guarded, "mcpd.hcl:2:13"},
		{guarded + keys + "auth \"anonymous\" \"all\" {}\n", "mcpd.hcl:2:13"},
		{"listen { address = \"0.0.0.0:8443\" }\n" + keys, "mcpd.hcl:1:20"},
		{"listen { address = \":80\" }\n", "mcpd.hcl:1:20"},
	} {
		config["mcpd.hcl"].Data = []byte(edit.text)
		_, err := s.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), edit.where) || !strings.Contains(err.Error(), "anyone who reaches it could call every tool") {
			t.Errorf("%s: got %v", edit.text, err)
		}
		if s.Snapshot().Revision() != revision {
			t.Fatalf("%s is served", edit.text)
		}
	}
	for _, text := range []string{"listen { address = \"localhost:80\" }\n", "listen { address = \"[::1]:80\" }\n", "listen { hosts = [\"x.example\"] }\n", "listen { unix = \"/tmp/s\" }\n"} {
		config["mcpd.hcl"].Data = []byte(text)
		if _, err := s.Load(t.Context()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
