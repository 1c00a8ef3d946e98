package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestCodeCallsToolsThatThereAre(t *testing.T) {
	operator := config(t, "upstream \"crm\" { url = \"https://crm.example/mcp\" }\ncodeact {\n  tools = [\"lookup\", \"lokup\", \"sub_*\", \"crm_get\", \"crm_*\", \"*\"]\n}\n")
	files := []*hclfile.Definitions{tools(t, "a.hcl", "tool \"lookup\" { run = \"return 1\" }\n")}
	want := []string{
		`mcpd.hcl:3:22: error: there is no tool named "lokup"; did you mean "lookup"?`,
		`mcpd.hcl:3:31: warning: no tool matches the pattern "sub_*" of the codeact block; the pattern covers tools that are added later; remove it if none will be`,
	}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, files, configcheck.Elsewhere{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Code calls a tool by the name without the prefix of its upstream; the block names it whole.
func TestToolsOfUpstreamsAreNamedWhole(t *testing.T) {
	operator := config(t, "codeact {\n  tools = [\"read_file\"]\n}\n")
	files := []*hclfile.Definitions{tools(t, "a.hcl", "tool \"files_read_file\" { run = \"return 1\" }\n")}
	want := []string{`mcpd.hcl:2:12: error: there is no tool named "read_file"; did you mean "files_read_file"?`}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, files, configcheck.Elsewhere{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
