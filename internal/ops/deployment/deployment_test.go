package deployment

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/compose"
)

// said decodes a configuration file, which must be valid.
func said(t *testing.T, source string, values definition.VarValues, files ...*definition.Definitions) privdiff.Snapshot {
	t.Helper()
	file, problems := hclfile.Parse(hclfile.Source{Path: "mcpd.hcl", Bytes: []byte(source)}, hclfile.ConfigKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	config, problems := file.DecodeConfig(values)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return privdiff.Snapshot{Config: config, Files: files}
}

// needing returns a grant that needs a secret.
func needing(secret string) definition.Call {
	return definition.Call{Grant: grant.Set{Secrets: []string{secret}}}
}

func TestComplete_neededSecrets(t *testing.T) {
	side := said(t, `
secret "tool" { env = "TOOL" }
secret "resource" { env = "RESOURCE" }
secret "template" { env = "TEMPLATE" }
secret "prompt" { env = "PROMPT" }
secret "hook" { env = "HOOK" }
secret "again" { env = "TOOL" }
secret "client" { env = "CLIENT" }
secret "token" {
  oauth {
    token_url     = "https://id.example.com/token"
    client_id     = "mcpd"
    client_secret = secret.client
  }
}
secret "boxed" { env = "BOXED" }
secret "idle" { env = "IDLE" }
upstream "web" {
  url = "https://mcp.example.com/mcp"
  header "Authorization" {
    value = "Bearer ${secret.token}"
  }
}
upstream "box" {
  container {
    image = "box"
    port  = 9000
    env   = { KEY = secret.boxed }
  }
}
`, nil, &definition.Definitions{
		Tools: []definition.Tool{{Call: needing("tool")}, {Call: needing("again")}}, Resources: []definition.Resource{{Call: needing("resource")}},
		Templates: []definition.Template{{Call: needing("template")}}, Prompts: []definition.Prompt{{Call: needing("prompt")}},
		Hooks: []definition.Hook{{Grant: needing("hook").Grant}},
	})
	d, problems := Complete(compose.Deployment{Env: []compose.Variable{{Name: "LANG", Value: "C"}}}, side, "secrets")
	if problems != nil {
		t.Fatal(problems)
	}
	var has []string
	for _, v := range d.Env {
		has = append(has, v.Name+"="+v.Value+v.Secret)
	}
	want := []string{"LANG=C", "TOOL=tool", "RESOURCE=resource", "TEMPLATE=template", "PROMPT=prompt", "HOOK=hook", "CLIENT=client"}
	if diff := cmp.Diff(want, has); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]compose.Variable{{Name: "KEY", Secret: "boxed"}}, d.Upstreams[0].Env); diff != "" {
		t.Errorf("container (-want +got)\n%s", diff)
	}
}

func TestComplete_anonymous(t *testing.T) {
	for blocks, want := range map[string][2]bool{
		"": {false, false},
		"auth \"api_key\" \"a\" {\n  file = \"/run/secrets/keys\"\n}":                                                           {false, true},
		"auth \"api_key\" \"a\" {\n  file = \"/run/secrets/keys\"\n}\nauth \"anonymous\" \"b\" {\n}":                            {false, false},
		"listen {\n  tls {\n    cert_file = \"/run/secrets/c\"\n    key_file = \"/run/secrets/k\"\n  }\n}":                      {true, false},
		"auth \"anonymous\" \"b\" {\n}\nauth \"oidc\" \"a\" {\n  issuer = \"https://id.example.com\"\n  audience = \"mcpd\"\n}": {false, false},
	} {
		d, problems := Complete(compose.Deployment{}, said(t, blocks, nil), "secrets")
		if got := [2]bool{d.TLS, d.Auth}; got != want || problems != nil {
			t.Errorf("%s\ngot %v, want %v; %v", blocks, got, want, problems)
		}
	}
}

func TestComplete_variables(t *testing.T) {
	side := said(t, `
variable "stage" { type = string }
variable "hosts" { type = list(string) }
variable "password" {
  type      = string
  sensitive = true
}
variable "untouched" { default = "x" }
`, definition.VarValues{"stage": {Text: ""}, "hosts": {Text: `["a", "b"]`}, "password": {Text: "hunter2"}})
	d, problems := Complete(compose.Deployment{}, side, "secrets")
	want := compose.Deployment{
		Env:     []compose.Variable{{Name: "MCPD_VAR_hosts", Value: `["a", "b"]`}, {Name: "MCPD_VAR_password", Secret: "MCPD_VAR_password"}, {Name: "MCPD_VAR_stage"}},
		Secrets: []compose.Secret{{Name: "MCPD_VAR_password", Environment: "MCPD_VAR_password"}},
	}
	if diff := cmp.Diff(want, d); diff != "" || problems != nil {
		t.Errorf("%v (-want +got)\n%s", problems, diff)
	}
}

func TestComplete_sharedSecretFile(t *testing.T) {
	side := said(t, `
secret "a" { file = "/run/secrets/token" }
secret "b" { file = "/run/secrets/token" }
upstream "box" {
  container {
    image = "box"
    port  = 9000
    reads = ["a"]
  }
}
`, nil, &definition.Definitions{Tools: []definition.Tool{{Call: needing("a")}, {Call: needing("b")}}})
	d, problems := Complete(compose.Deployment{}, side, "../s")
	if diff := cmp.Diff([]compose.Secret{{Name: "token", File: "../s/token"}}, d.Secrets); diff != "" || problems != nil {
		t.Errorf("%v (-want +got)\n%s", problems, diff)
	}
	if diff := cmp.Diff([][]string{{"token"}, {"token"}}, [][]string{d.Reads, d.Upstreams[0].Reads}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestComplete_keysInStateVolume(t *testing.T) {
	side := said(t, "auth \"api_key\" \"a\" {\n  file = \"/var/lib/mcpd/keys.json\"\n}\n", nil)
	for _, state := range []bool{true, false} {
		d, problems := Complete(compose.Deployment{State: state}, side, "secrets")
		if problems.HasErrors() == state || d.Reads != nil {
			t.Errorf("with a volume %t: got %v, %v", state, d.Reads, problems)
		}
	}
}

func TestComplete_auditInStateVolume(t *testing.T) {
	for path, want := range map[string]string{
		"/var/lib/mcpd/audit.jsonl":    "",
		"/var/lib/mcpd/../audit.jsonl": "the server in the container cannot write here",
		"/var/lib/mcpd":                "the server in the container cannot write here",
		"audit.jsonl":                  "the server in the container cannot write here",
	} {
		_, problems := Complete(compose.Deployment{State: true}, said(t, "audit {\n  path = \""+path+"\"\n}\n", nil), "secrets")
		if got := len(problems); got != min(len(want), 1) || got == 1 && problems[0].Summary != want {
			t.Errorf("%s: got %v, want %q", path, problems, want)
		}
	}
}

func TestComplete_database(t *testing.T) {
	const block = "secret \"password\" { file = \"/run/secrets/password\" }\nsecret \"key\" { file = \"/run/secrets/key\" }\n" +
		"state {\n  url = \"postgres://mcpd:${secret.password}@%s\"\n  key = secret.key\n}\n"
	for _, c := range []struct {
		at, more string
		volume   bool
		reads    string
		want     string
	}{
		{at: "db.example.com/mcpd?sslmode=verify-full", reads: "password key"},
		{at: "db.example.com/mcpd?sslmode=verify-full&sslrootcert=/run/secrets/ca.pem", reads: "ca.pem password key"},
		{at: "db.example.com/mcpd?sslmode=verify-full&sslrootcert=system", reads: "password key"},
		{at: "db.example.com/mcpd?sslrootcert=/etc/ca.pem", reads: "password key", want: `the container has no file "/etc/ca.pem"`},
		{at: "127.0.0.1:5432/mcpd", reads: "password key", want: "in a container this address is the container, not the state database"},
		{at: "LOCALHOST/mcpd", reads: "password key", want: "in a container this address is the container, not the state database"},
		{at: "db/mcpd", more: "audit {\n  path = \"/var/lib/mcpd/audit.jsonl\"\n}\n", volume: true, reads: "password key"},
		{at: "db/mcpd", more: "auth \"api_key\" \"a\" {\n  file = \"/var/lib/mcpd/keys.json\"\n}\n", volume: true, reads: "password key"},
		{at: "db/mcpd", more: "auth \"api_key\" \"a\" {\n  file = \"/run/secrets/keys.json\"\n}\n", reads: "keys.json password key"},
	} {
		d, problems := Complete(compose.Deployment{State: true, Database: true}, said(t, fmt.Sprintf(block, c.at)+c.more, nil), "secrets")
		got := ""
		if len(problems) > 0 {
			got = problems[0].Summary
		}
		if d.State != c.volume || got != c.want || len(problems) > 1 || strings.Join(d.Reads, " ") != c.reads {
			t.Errorf("%s %s: got volume %t, reads %v, %v", c.at, c.more, d.State, d.Reads, problems)
		}
	}
}

func TestComplete_replicaBlock(t *testing.T) {
	const block = "secret \"url\" { env = \"URL\" }\nsecret \"key\" { env = \"KEY\" }\nstate {\n  url = secret.url\n  key = secret.key\n  replica {\n    %s\n  }\n}\n"
	for _, c := range []struct {
		arguments string
		port      int
		want      string
	}{
		{arguments: `listen = "0.0.0.0:7443"`, port: 7443},
		{arguments: `listen = "[::]:7443"`, port: 7443},
		{arguments: `listen = ":7443"`, port: 7443},
		{arguments: `listen = "10.0.0.7:7443"`, port: 7443, want: "in a container other replicas do not reach this listen address of the replica block"},
		{arguments: "listen = \"0.0.0.0:7443\"\n    address = \"10.0.0.7:7443\"", port: 7443, want: "all replicas would have the address in the replica block"},
		{arguments: `listen = "0.0.0.0:0"`, want: "the replica block chooses a free port, which other containers cannot know"},
	} {
		d, problems := Complete(compose.Deployment{Database: true}, said(t, fmt.Sprintf(block, c.arguments), nil), "secrets")
		got := ""
		if len(problems) > 0 {
			got = problems[0].Summary
		}
		if d.Peers != c.port || got != c.want || len(problems) > 1 {
			t.Errorf("%s: got port %d, %v", c.arguments, d.Peers, problems)
		}
	}
}

func TestComplete_databaseKeepsFilesOfTools(t *testing.T) {
	side := func(g grant.Set) privdiff.Snapshot {
		return said(t, "secret \"url\" { env = \"URL\" }\nstate { url = secret.url }\n", nil, &definition.Definitions{Tools: []definition.Tool{{Call: definition.Call{Grant: g}}}})
	}
	for _, c := range []struct {
		grant grant.Set
		want  bool
	}{
		{grant.Set{FS: []grant.FS{{Root: "/var/lib/mcpd", Write: true}}}, true},
		{grant.Set{FS: []grant.FS{{Root: "/var/lib/mcpdx"}}}, false},
		{grant.Set{SQL: []grant.SQL{{Path: "/var/lib/mcpd/orders.db"}}}, true},
		{grant.Set{SQL: []grant.SQL{{}}}, false},
	} {
		d, problems := Complete(compose.Deployment{State: true, Database: true}, side(c.grant), "secrets")
		if d.State != c.want || problems != nil {
			t.Errorf("%+v: got %t, %v", c.grant, d.State, problems)
		}
	}
}

func TestTools_skipHidden(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	got, err := Tools(fstest.MapFS{"a.hcl": file("a"), "lib/b.js": file("b"), ".git/c": file("c"), "d.hcl~": file("d")})
	if diff := cmp.Diff(map[string][]byte{"a.hcl": []byte("a"), "lib/b.js": []byte("b")}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	got, err = Tools(fstest.MapFS{"a": file(strings.Repeat("x", compose.MaxTools)), "b": file("x")})
	if got != nil || err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestComplete_loopbackUpstream(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:3711/mcp":          true,
		"https://localhost:3711/mcp":         true,
		"http://LOCALHOST:3711/mcp":          true,
		"http://crm.localhost:3711/mcp":      true,
		"http://[::1]:3711/mcp":              true,
		"http://[::ffff:127.0.0.1]:3711/mcp": true,
		"http://0.0.0.0:3711/mcp":            true,
		"http://[::]:3711/mcp":               true,
		"http://10.0.0.7:3711/mcp":           false,
		"http://crm:3711/mcp":                false,
		"https://localhost.example.com/mcp":  false,
	} {
		_, problems := Complete(compose.Deployment{}, said(t, "upstream \"crm\" {\n  url = \""+url+"\"\n}\n", nil), "secrets")
		switch {
		case problems.HasErrors() != want:
			t.Errorf("%s: got %v", url, problems)
		case want && problems[0].Range.Start != diag.Pos{Line: 2, Column: 9, Byte: 25}:
			t.Errorf("%s: reported at %v", url, problems[0].Range)
		}
	}
}

func TestUnaccepted(t *testing.T) {
	side := said(t, `
upstream "first" {
  url = "https://a.example.com/mcp"
}
upstream "strict" {
  url = "https://b.example.com/mcp"
  pin = "strict"
}
upstream "off" {
  url = "https://c.example.com/mcp"
  pin = "off"
}
upstream "resources" {
  url   = "https://d.example.com/mcp"
  offer = ["resources"]
}
upstream "known" {
  url = "https://e.example.com/mcp"
}
`, nil)
	lock := new(lockfile.Lock).WithTools("known")
	got := map[int]string{}
	for _, w := range Unaccepted(side, lock) {
		if w.Severity != diag.Warning {
			t.Errorf("%v is not a warning", w)
		}
		got[w.Range.Start.Line] = w.Detail
	}
	const detail = "run mcpd lock accept with access to it, commit mcpd.lock, and run mcpd compose again: "
	want := map[int]string{2: detail + "until then each start trusts the first list of tools", 5: detail + "until then it has no tools"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
