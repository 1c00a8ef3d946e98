package examples_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
)

func TestHTTP_testBlocks(t *testing.T) {
	passes(t, load(t, "http", engine.Options{}), 5)
}

func TestCeiling(t *testing.T) {
	tools, err := os.ReadFile("http/tools.d/crm.hcl")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.ReplaceAll(string(tools), "crm.example.com", "crm.example.net")
	server, err := engine.New(engine.Options{
		Name: "example", Files: engine.Files{Config: engine.Dir("http"), Tools: fstest.MapFS{"crm.hcl": {Data: []byte(elsewhere)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	report, err := server.Load(t.Context())
	if err == nil {
		t.Fatal("a grant beyond the ceiling was accepted")
	}
	problem := report.Problems[0]
	if got := problem.Range.String(); !strings.HasPrefix(got, "tools.d/crm.hcl:2") || !strings.Contains(problem.Summary, "crm.example.net:443") {
		t.Errorf("got %s: %s, want the grant in lines 20 to 29", got, problem.Summary)
	}
}
