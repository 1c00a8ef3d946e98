package crossref_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/crossref"
	"github.com/mcpd/mcpd/internal/hclfile"
)

func TestASecretThatIsNotRevealedIsReadByNobody(t *testing.T) {
	const allow = "  allow {\n    secrets { names = [\"key\", \"token\"] }\n  }\n  run = \"return secrets.key + secrets.token;\"\n}\n"
	file, problems := hclfile.Parse(hclfile.Source{Path: "tool.hcl", Bytes: []byte("tool \"t\" {\n" + allow)}, hclfile.ToolsKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(hclfile.Scope{Secrets: []string{"key", "token"}})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	operator := config(t, "secret \"key\" {\n  env    = \"KEY\"\n  reveal = true\n}\nsecret \"token\" { env = \"TOKEN\" }\nhook \"h\" {\n  on = [\"end\"]\n"+allow)
	want := []string{
		`mcpd.hcl:9:31: error: hook "h" is granted to read the secret "token", which the operator does not reveal; use it in the header of a grant, or ask the operator to write reveal = true in its block`,
		`  note mcpd.hcl:5:1: the secret`,
		`tool.hcl:3:31: error: tool "t" is granted to read the secret "token", which the operator does not reveal; use it in the header of a grant, or ask the operator to write reveal = true in its block`,
		`  note mcpd.hcl:5:1: the secret`,
	}
	if diff := cmp.Diff(want, said(crossref.CheckPlaces(operator, []*hclfile.Definitions{&defs}, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
