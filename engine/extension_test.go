package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/scripting"
)

func TestNew_stateWithoutExtension(t *testing.T) {
	if _, err := engine.New(engine.Options{Name: "test", StatePath: "mcpd.db"}); err == nil || !strings.Contains(err.Error(), "github.com/mcpd/mcpd/extensions/sqlite") {
		t.Errorf("got %v", err)
	}
}

func TestNew_sqliteTwice(t *testing.T) {
	_, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{sqlite.New(), sqlite.New()}})
	if want := `new server: Options.Extensions[1] "extensions/sqlite" is listed twice`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestSQLGrant_missingExtension(t *testing.T) {
	for driver, where := range map[string]string{"sqlite": `dsn = "/nowhere/shop.db"`, "postgres": `dsn = "postgres://app@db.example/shop"`} {
		text := "tool \"t\" {\n  allow {\n    sql \"d\" {\n      driver = \"" + driver + "\"\n      " + where + "\n      statement \"s\" { query = \"SELECT 1\" }\n    }\n  }\n  run = \"return sql.d;\"\n}\n"
		s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Tools: files("t.hcl", text)}, Scripts: engine.Scripts{Executor: scripting.Inline()}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		report, err := s.Load(t.Context())
		found := slices.ContainsFunc(report.Problems, func(d diag.Diagnostic) bool {
			return d.Code == "missing-extension" && d.Range.String() == "tools.d/t.hcl:4:16" && strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/"+driver)
		})
		if err == nil || !found {
			t.Errorf("%s: got %v, %v", driver, report.Problems, err)
		}
	}
}

func TestAuth_missingExtension(t *testing.T) {
	config := files("mcpd.hcl", "server {}\n\nauth \"oidc\" \"corp\" {\n  issuer   = \"https://idp.example\"\n  audience = \"https://mcp.example/mcp\"\n}\n")
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Config: config, ConfigPath: "mcpd.hcl"}, Scripts: engine.Scripts{Executor: scripting.Inline()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	report, err := s.Load(t.Context())
	found := slices.ContainsFunc(report.Problems, func(d diag.Diagnostic) bool {
		return d.Code == "missing-extension" && d.Range.String() == "mcpd.hcl:3:1" && strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/oidc")
	})
	if err == nil || !found {
		t.Errorf("got %v, %v", report.Problems, err)
	}
}

func TestUpstream_missingExtension(t *testing.T) {
	config := files("mcpd.hcl", "server {}\n\nupstream \"lab\" {\n  url = \"https://lab.example/mcp\"\n}\n")
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Config: config, ConfigPath: "mcpd.hcl"}})
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
