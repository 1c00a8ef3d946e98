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
