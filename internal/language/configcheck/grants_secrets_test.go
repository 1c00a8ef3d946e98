package configcheck_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
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
	if diff := cmp.Diff(want, said(configcheck.CheckPlaces(operator, []*hclfile.Definitions{&defs}, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestATokenOfAUserGoesIntoRequestsOfCallsAlone(t *testing.T) {
	const allow = "  allow {\n    http \"x\" {\n      hosts = [\"a.example:443\"]\n      header \"A\" { value = \"Bearer ${secret.mine}\" }\n    }\n" +
		"    exec \"e\" {\n      path = \"/bin/true\"\n      env = { A = base64encode(secret.mine) }\n    }\n" +
		"    sql \"s\" {\n      driver = \"postgres\"\n      dsn = secret.mine\n      statement \"one\" { query = \"SELECT 1\" }\n    }\n  }\n  run = \"return http.x && exec.e && sql.s;\"\n}\n"
	file, problems := hclfile.Parse(hclfile.Source{Path: "tool.hcl", Bytes: []byte("tool \"t\" {\n" + allow)}, hclfile.ToolsKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(hclfile.Scope{Secrets: []string{"mine"}})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	const block = "secret \"mine\" {\n  oauth {\n    authorize_url = \"https://a.example/a\"\n    redirect_url = \"http://127.0.0.1:8976/b\"\n    token_url = \"https://a.example/t\"\n    client_id = \"c\"\n  }\n}\n"
	operator := config(t, block+"hook \"h\" {\n  on = [\"end\"]\n"+allow)
	places := machine(nil)
	places.Program = func(path string) (string, error) { return path, nil }
	var got []string
	for _, line := range said(configcheck.CheckPlaces(operator, []*hclfile.Definitions{&defs}, places)) {
		if strings.Contains(line, "token of a user") {
			got = append(got, line)
		}
	}
	want := []string{
		`mcpd.hcl:12:5: error: hook "h" sends the token of a user, "mine"; a hook runs for no user; use a secret that is the server's own`,
		`mcpd.hcl:16:5: error: hook "h" gives a program the token of a user, "mine"; such a token goes into the headers of requests alone`,
		`mcpd.hcl:20:5: error: hook "h" opens a database with the token of a user, "mine"; such a token goes into the headers of requests alone`,
		`tool.hcl:7:5: error: tool "t" gives a program the token of a user, "mine"; such a token goes into the headers of requests alone`,
		`tool.hcl:11:5: error: tool "t" opens a database with the token of a user, "mine"; such a token goes into the headers of requests alone`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAServerBehindThisOneGetsNoTokenOfAUser(t *testing.T) {
	const block = "secret \"mine\" {\n  oauth {\n    authorize_url = \"https://a.example/a\"\n    redirect_url = \"http://127.0.0.1:8976/b\"\n    token_url = \"https://a.example/t\"\n    client_id = \"c\"\n  }\n}\n"
	operator := config(t, block+"upstream \"crm\" {\n  url = \"https://crm.example/mcp\"\n  header \"A\" { value = \"Bearer ${secret.mine}\" }\n}\n"+
		"upstream \"lab\" {\n  command = [\"lab\"]\n  env = { A = secret.mine }\n}\n")
	const detail = `a server is reached as mcpd itself: use a secret of a client_id with its client_secret, or one that is the server's own`
	want := []string{
		`mcpd.hcl:9:10: error: the upstream "crm" gets the token of a user, "mine"; ` + detail, `  note mcpd.hcl:1:1: the secret`,
		`mcpd.hcl:13:10: error: the upstream "lab" gets the token of a user, "mine"; ` + detail, `  note mcpd.hcl:1:1: the secret`,
	}
	if diff := cmp.Diff(want, said(configcheck.CheckPlaces(operator, nil, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
