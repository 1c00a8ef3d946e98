package engine_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
)

func TestUpstream_missingExtension(t *testing.T) {
	config := files("mcpd.hcl", "server {}\n\nupstream \"lab\" {\n  url = \"https://lab.example/mcp\"\n}\n")
	s, err := engine.New(engine.Options{Name: "test", Config: config, ConfigPath: "mcpd.hcl"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	report, err := s.Load(t.Context())
	if err == nil || len(report.Problems) != 1 {
		t.Fatalf("got %v", report.Problems)
	}
	d := report.Problems[0]
	if got, want := d.Range.String(), "mcpd.hcl:3:1"; !strings.HasPrefix(got, want) || d.Code != "missing-extension" || !strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/federation") {
		t.Errorf("got %s: %v: %s", got, d, d.Detail)
	}
}

func TestNew_upstreamsWithoutExtension(t *testing.T) {
	u, err := engine.NewUpstream("lab", "https://lab.example/mcp", "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(engine.Options{Name: "test", Upstreams: []engine.Upstream{u}}); err == nil || !strings.Contains(err.Error(), "github.com/mcpd/mcpd/extensions/federation") {
		t.Errorf("got %v", err)
	}
}

func TestNew_extensionTwice(t *testing.T) {
	_, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{federation.New(), federation.New()}})
	if want := `new server: Options.Extensions[1] "extensions/federation" is there twice`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
