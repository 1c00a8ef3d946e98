package crossref_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/crossref"
	"github.com/mcpd/mcpd/internal/hclfile"
)

func TestCodeCallsToolsThatThereAre(t *testing.T) {
	operator := config(t, "upstream \"crm\" { url = \"https://crm.example/mcp\" }\ncodeact {\n  tools = [\"lookup\", \"lokup\", \"sub_*\", \"crm_get\", \"crm_*\", \"*\"]\n}\n")
	files := []*hclfile.Definitions{tools(t, "a.hcl", "tool \"lookup\" { run = \"return 1\" }\n")}
	want := []string{
		`mcpd.hcl:3:22: error: there is no tool named "lokup"; did you mean "lookup"?`,
		`mcpd.hcl:3:31: warning: no tool matches the pattern "sub_*" of the codeact block; the pattern covers tools that are added later; remove it if none will be`,
	}
	if diff := cmp.Diff(want, said(crossref.Check(operator, files, crossref.Elsewhere{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
