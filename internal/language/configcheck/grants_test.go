package configcheck_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// machine returns a host on which every directory exists, except for the given links and
// missing paths.
func machine(links map[string]string) configcheck.HostPaths {
	return configcheck.HostPaths{
		Tools: "/srv/mcpd/tools.d", Config: "/srv/mcpd", State: "/var/lib/mcpd", Home: "/home/ann",
		Find: func(path string) (string, error) {
			for link, to := range links {
				if rest, ok := strings.CutPrefix(path, link); ok && (rest == "" || rest[0] == '/') {
					path = to + rest
				}
			}
			switch {
			case !strings.HasPrefix(path, "/"):
				return "", errors.New("it is relative to a file that is not on disk")
			case strings.Contains(path, "missing"):
				return path, fs.ErrNotExist
			}
			return path, nil
		},
	}
}

// rooted returns a tool file that grants a root.
func rooted(root, mode string) string {
	return "tool \"t\" {\n  allow {\n    fs \"f\" {\n      root = \"" + root + "\"\n      mode = \"" + mode + "\"\n    }\n  }\n  run = \"return fs.f;\"\n}\n"
}

// judged returns the diagnostics of a root.
func judged(t *testing.T, config *definition.Config, places configcheck.HostPaths, root, mode string) string {
	t.Helper()
	problems := configcheck.CheckHost(config, []*definition.Definitions{tools(t, "a.hcl", rooted(root, mode))}, places)
	if len(problems) == 0 {
		return ""
	}
	if len(problems) > 1 || problems[0].Range.Start.Line != 4 {
		t.Fatalf("%s: %v", root, problems)
	}
	return problems[0].Code + ": " + strings.TrimPrefix(problems[0].Summary, `tool "t" gives scripts `)
}

func TestCheckHost_unsafeRoots(t *testing.T) {
	places := machine(map[string]string{"/srv/to-etc": "/etc", "/bin": "/usr/bin", "/home": "/data/home", "/srv/alias": "/srv/mcpd"})
	secret := config(t, `
secret "s" { file = "/srv/keys/token" }
audit { path = "log/calls.jsonl" }
auth "api_key" "all" { file = "doors/keys.json" }
listen {
  tls {
    cert_file      = "/srv/tls/public/cert.pem"
    key_file       = "/srv/tls/key.pem"
    client_ca_file = "/srv/ca/ca.pem"
  }
}
`)
	for root, want := range map[string]string{
		"/":                      "bad-grant: all files of the host",
		"/etc":                   "bad-grant: the system directory /etc",
		"/etc/app":               "bad-grant: the system directory /etc",
		"/etc/../etc/":           "bad-grant: the system directory /etc",
		"/proc/self":             "bad-grant: the system directory /proc",
		"/dev/shm":               "bad-grant: the system directory /dev",
		"/root/x":                "bad-grant: the system directory /root",
		"/boot":                  "bad-grant: the system directory /boot",
		"/sys":                   "bad-grant: the system directory /sys",
		"/run/secrets":           "bad-grant: the system directory /run",
		"/srv/to-etc/app":        "bad-grant: the system directory /etc",
		"/home":                  "bad-grant: the home directory",
		"/home/ann":              "bad-grant: the home directory",
		"/data":                  "bad-grant: the home directory",
		"/data/home/ann":         "bad-grant: the home directory",
		"/home/ann/.ssh":         "bad-grant: a hidden directory of the home directory",
		"/data/home/ann/.aws/x":  "bad-grant: a hidden directory of the home directory",
		"/srv":                   "bad-grant: the tools directory",
		"/srv/mcpd":              "bad-grant: the tools directory",
		"/srv/alias":             "bad-grant: the tools directory",
		"/srv/mcpd/tools.d":      "bad-grant: the tools directory",
		"/var/lib":               "bad-grant: the system directory /var/lib",
		"/var/lib/mcpd":          "bad-grant: the state directory of mcpd",
		"/srv/keys":              "bad-grant: the directory of a secret file",
		"/srv/mcpd/log":          "bad-grant: the directory of the audit log",
		"/srv/alias/log":         "bad-grant: the directory of the audit log",
		"/srv/mcpd/log/x":        "",
		"/srv/mcpd/doors":        "bad-grant: the directory of an authentication file",
		"/srv/tls":               "bad-grant: the directory of an authentication file",
		"/srv/tls/public":        "bad-grant: the directory of an authentication file",
		"/srv/ca":                "bad-grant: the directory of an authentication file",
		"/home/ann/logs":         "",
		"/home/anna":             "bad-grant: the home directory of anna",
		"/home/bob":              "bad-grant: the home directory of bob",
		"/home/bob/.ssh":         "bad-grant: a hidden directory of the home directory of bob",
		"/data/home/bob/.config": "bad-grant: a hidden directory of the home directory of bob",
		"/Users/bob/.zshrc":      "bad-grant: a hidden directory of the home directory of bob",
		"/home/bob/logs":         "",
		"/Users":                 "bad-grant: the home directories of all users",
		"/srv/git/.ssh":          "bad-grant: a directory of keys, .ssh",
		"/srv/app/.aws/cli":      "bad-grant: a directory of keys, .aws",
		"/srv/app/.sshd":         "",
		"/var":                   "bad-grant: the system directory /var",
		"/var/spool":             "bad-grant: the system directory /var/spool",
		"/var/spool/cron/tabs":   "bad-grant: the system directory /var/spool",
		"/var/backups":           "bad-grant: the system directory /var/backups",
		"/var/lib/docker/x":      "bad-grant: the system directory /var/lib/docker",
		"/var/lib/app":           "",
		"/var/log":               "",
		"/var/log/app":           "",
		"/etcetera":              "",
		"/srv/mcpd/logs":         "",
		"/srv/mcpd/tools.d/data": "",
		"/usr/share/dict":        "",
		"/srv/missing":           "missing-root: the root does not exist yet",
		"relative":               "missing-root: the root is not a usable directory: it is relative to a file that is not on disk",
	} {
		if got := judged(t, secret, places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	for root, want := range map[string]string{
		"/srv/mcpd/tools.d/data": "bad-grant: write access to the tools directory",
		"/usr/share/dict":        "bad-grant: the system directory /usr",
		"/bin":                   "bad-grant: the system directory /bin",
		"/srv/mcpd/data":         "",
		"/tmp/x":                 "",
		"/etc":                   "bad-grant: the system directory /etc",
		"/etc/app":               "bad-grant: the system directory /etc",
		"/var":                   "bad-grant: the system directory /var",
		"/var/spool/app":         "bad-grant: the system directory /var/spool",
		"/var/log":               "bad-grant: the system directory /var/log",
		"/var/log/app":           "",
		"/var/lib/app":           "",
	} {
		if got := judged(t, secret, places, root, "rw"); got != want {
			t.Errorf("writing %s: got %q, want %q", root, got, want)
		}
	}
}

func TestCheckHost_homesOfOtherUsers(t *testing.T) {
	places := machine(nil)
	places.Home = "/root"
	for root, want := range map[string]string{
		"/home":          "bad-grant: the home directories of all users",
		"/home/ann":      "bad-grant: the home directory of ann",
		"/home/ann/.ssh": "bad-grant: a hidden directory of the home directory of ann",
		"/home/ann/logs": "",
	} {
		if got := judged(t, config(t, ""), places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	named := config(t, "ceiling { fs_roots = [\"/home/ann\"] }\n")
	if got := judged(t, named, places, "/home/ann", "ro"); got != "" {
		t.Errorf("named by the ceiling: got %q", got)
	}
}

func TestCeiling_roots(t *testing.T) {
	places := machine(map[string]string{"/srv/app/out": "/data/out", "/mnt/app": "/srv/app"})
	ceiling := config(t, "ceiling { fs_roots = [\"/srv/app\", \"/etc/app\", \"/tmp/missing\"] }\n")
	const over = `over-ceiling: tool "t" has a root that the ceiling does not allow`
	for root, want := range map[string]string{
		"/srv/app":       "",
		"/srv/app/logs":  "",
		"/mnt/app/logs":  "",
		"/srv/app-evil":  over,
		"/srv/app/out":   over,
		"/srv/app/../b":  over,
		"/var/log":       over,
		"relative":       over,
		"/etc/app":       "",
		"/etc/app/below": "bad-grant: the system directory /etc",
		"/etc":           "bad-grant: the system directory /etc",
		"/tmp/missing/x": "missing-root: the root does not exist yet",
	} {
		if got := judged(t, ceiling, places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	if got := judged(t, config(t, "ceiling { fs_roots = [] }\n"), places, "/srv/app", "ro"); got != over {
		t.Errorf("empty list: got %q", got)
	}
	if got := judged(t, config(t, "ceiling { ask = [] }\n"), places, "/srv/app", "ro"); got != "" {
		t.Errorf("no list: got %q", got)
	}
}

func TestCheckHost_everyDefinition(t *testing.T) {
	const allow = "  allow {\n    fs \"f\" { root = \"/etc\" }\n    env { names = [\"TOKEN\", \"LANG\", \"APP_A\"] }\n  }\n  run = \"return fs.f && env.LANG;\"\n}\n"
	got := configcheck.CheckHost(
		config(t, "ceiling { env = [\"APP_*\"] }\nsecret \"token\" { env = \"TOKEN\" }\nhook \"h\" {\n  on = [\"end\"]\n"+allow),
		[]*definition.Definitions{
			tools(t, "tool.hcl", "tool \"t\" {\n"+allow), tools(t, "hook.hcl", "hook \"h\" {\n  on = [\"end\"]\n"+allow),
			tools(t, "resource.hcl", "resource \"r\" {\n  uri = \"x:r\"\n"+allow), tools(t, "prompt.hcl", "prompt \"p\" {\n"+allow),
			tools(t, "template.hcl", "resource_template \"r\" {\n  uri_template = \"x:{a}\"\n"+allow),
		}, machine(nil))
	counts := map[string]int{}
	for _, p := range got {
		counts[p.Range.File+" "+p.Code]++
	}
	want := map[string]int{
		"mcpd.hcl bad-grant": 2, "tool.hcl bad-grant": 2, "hook.hcl bad-grant": 2, "resource.hcl bad-grant": 2, "prompt.hcl bad-grant": 2, "template.hcl bad-grant": 2,
		"tool.hcl over-ceiling": 1, "hook.hcl over-ceiling": 1, "resource.hcl over-ceiling": 1, "prompt.hcl over-ceiling": 1, "template.hcl over-ceiling": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantTool := []string{
		`tool.hcl:3:21: error: tool "t" gives scripts the system directory /etc; use a directory that contains only what the script needs, or ask the operator to add this one to ceiling.fs_roots`,
		`tool.hcl:4:20: error: tool "t" is granted env.TOKEN, which contains the secret "token"; use the secret in a header of a grant, or grant it with secrets { names = [...] }`,
		`  note mcpd.hcl:2:1: the secret`,
		`tool.hcl:4:29: error: tool "t" is granted env.LANG, which the ceiling does not allow; use a variable of ceiling.env, or ask the operator to add this one`,
		`  note mcpd.hcl:1:1: the ceiling`,
	}
	if diff := cmp.Diff(wantTool, said(got)[len(said(got))-len(wantTool):]); diff != "" {
		t.Logf("all diagnostics: %s", strings.Join(said(got), "\n"))
		t.Errorf("tool (-want +got)\n%s", diff)
	}
}

// If the config could not be parsed, the ceiling is unknown.
func TestCheckHost_incomplete(t *testing.T) {
	defs := tools(t, "a.hcl", `tool "t" {
  allow {
    http "h" { hosts = ["*.com:443"] }
    fs "etc" { root = "/etc" }
  }
  run = "return 1;"
}
`)
	for _, incomplete := range []bool{true, false} {
		operator := config(t, "")
		operator.Incomplete = incomplete
		if got := configcheck.CheckHost(operator, []*definition.Definitions{defs}, machine(nil)); got.HasErrors() == incomplete {
			t.Errorf("incomplete %t: %v", incomplete, said(got))
		}
	}
}

func TestCheckHost_unrevealedSecret(t *testing.T) {
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
		`mcpd.hcl:9:31: error: hook "h" may read the secret "token", which has no reveal = true; use it in a header of a grant, or ask the operator to set reveal = true`,
		`  note mcpd.hcl:5:1: the secret`,
		`tool.hcl:3:31: error: tool "t" may read the secret "token", which has no reveal = true; use it in a header of a grant, or ask the operator to set reveal = true`,
		`  note mcpd.hcl:5:1: the secret`,
	}
	if diff := cmp.Diff(want, said(configcheck.CheckHost(operator, []*definition.Definitions{&defs}, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckHost_userTokens(t *testing.T) {
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
	for _, line := range said(configcheck.CheckHost(operator, []*definition.Definitions{&defs}, places)) {
		if strings.Contains(line, "a user token") {
			got = append(got, line)
		}
	}
	want := []string{
		`mcpd.hcl:12:5: error: hook "h" sends a user token, "mine"; a hook has no user; use a secret of the server`,
		`mcpd.hcl:16:5: error: hook "h" passes a user token to a program, "mine"; use such a token only in headers of requests`,
		`mcpd.hcl:20:5: error: hook "h" opens a database with a user token, "mine"; use such a token only in headers of requests`,
		`tool.hcl:7:5: error: tool "t" passes a user token to a program, "mine"; use such a token only in headers of requests`,
		`tool.hcl:11:5: error: tool "t" opens a database with a user token, "mine"; use such a token only in headers of requests`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckHost_userTokenForUpstream(t *testing.T) {
	const block = "secret \"mine\" {\n  oauth {\n    authorize_url = \"https://a.example/a\"\n    redirect_url = \"http://127.0.0.1:8976/b\"\n    token_url = \"https://a.example/t\"\n    client_id = \"c\"\n  }\n}\n"
	operator := config(t, block+"upstream \"crm\" {\n  url = \"https://crm.example/mcp\"\n  header \"A\" { value = \"Bearer ${secret.mine}\" }\n}\n"+
		"upstream \"lab\" {\n  command = [\"lab\"]\n  env = { A = secret.mine }\n}\n")
	const detail = `use a secret with client_id and client_secret, or another secret of the server`
	want := []string{
		`mcpd.hcl:9:10: error: the upstream "crm" uses a user token, "mine"; ` + detail, `  note mcpd.hcl:1:1: the secret`,
		`mcpd.hcl:13:10: error: the upstream "lab" uses a user token, "mine"; ` + detail, `  note mcpd.hcl:1:1: the secret`,
	}
	if diff := cmp.Diff(want, said(configcheck.CheckHost(operator, nil, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// databases returns a tool file that grants SQLite files.
func databases(where string) string {
	return "tool \"t\" {\n  allow {\n    sql \"d\" {\n      driver = \"sqlite\"\n" + where + "\n      statement \"s\" { query = \"SELECT 1\" }\n    }\n  }\n  run = \"return sql.d;\"\n}\n"
}

func TestCheckHost_unsafeDatabases(t *testing.T) {
	places := machine(nil)
	find := places.Find
	places.Find = func(path string) (string, error) {
		if strings.HasSuffix(path, ".db") && !strings.Contains(path, "missing") {
			return path, errors.New("it is not a directory")
		}
		if strings.Contains(path, "missing") {
			return path, fs.ErrNotExist
		}
		return find(path)
	}
	own := config(t, "ceiling {\n  sql_roots   = [\"/srv/data\", \"/etc/app.db\"]\n  sql_drivers = [\"sqlite\"]\n  sql_hosts   = [\"*.db.internal:5432\"]\n}\nsecret \"s\" { file = \"/srv/keys/token.db\" }\n")
	none := config(t, "")
	for _, c := range []struct {
		config      *definition.Config
		where, want string
	}{
		{none, `dsn = "/etc/shadow.db"`, `bad-grant: tool "t" gives scripts the system directory /etc`},
		{none, `dsn = "/var/lib/mcpd/state.db"`, `bad-grant: tool "t" gives scripts a state file of mcpd`},
		{none, `dsn = "/home/ann/.config/x.db"`, `bad-grant: tool "t" gives scripts a hidden directory of the home directory`},
		{none, "root = \"/\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives scripts all files of the host`},
		{none, "root = \"/var/lib/mcpd\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives scripts the state directory of mcpd`},
		{none, `dsn = "/data/shop.db"`, ""},
		{none, `dsn = "/data/missing.db"`, "missing-root: the database file does not exist yet"},
		{none, `dsn = "/data"`, "missing-root: the dsn is a directory"},
		{own, `dsn = "/srv/data/shop.db"`, ""},
		{own, `dsn = "/etc/app.db"`, ""},
		{own, `dsn = "/srv/keys/token.db"`, `bad-grant: tool "t" gives scripts the directory of a secret file`},
		{own, `dsn = "/data/shop.db"`, `over-ceiling: tool "t" has a root that the ceiling does not allow`},
		{own, "root = \"/srv/data-evil\"\nglob = [\"*.db\"]", `over-ceiling: tool "t" has a root that the ceiling does not allow`},
	} {
		got := ""
		for _, p := range configcheck.CheckHost(c.config, []*definition.Definitions{tools(t, "a.hcl", databases(c.where))}, places) {
			got += p.Code + ": " + p.Summary
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.where, got, c.want)
		}
	}
	file := strings.ReplaceAll(databases(`dsn = "postgres://app@evil.example/shop?sslmode=require"`), `"sqlite"`, `"postgres"`)
	var codes []string
	for _, p := range configcheck.Check(own, []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{}) {
		codes = append(codes, p.Code+" "+p.Range.String())
	}
	if got := strings.Join(codes, ", "); got != "over-ceiling a.hcl:4:16, over-ceiling a.hcl:5:7" {
		t.Errorf("with the ceiling: %s", got)
	}
}

func TestCheckHost_sharedDomains(t *testing.T) {
	const (
		granting = `tool "t" {
  allow {
    http "h" { hosts = ["api.example.com:443", "*.com:443", "*.example.com:443", "*.github.io:443"] }
  }
  run = "return http.h;"
}
`
		operators = `hook "o" {
  on = ["end"]
  allow {
    http "h" { hosts = ["*.co.uk:443"] }
  }
  run = "http.h;"
}
`
		advice  = `; name the hosts, or a domain with one owner, as in "*.example.com:443", or ask the operator to add it to ceiling.http_hosts`
		com     = `a.hcl:3:48: error: tool "t" may reach any host below com, where anyone can register a name` + advice
		github  = `a.hcl:3:82: error: tool "t" may reach any host below github.io, where anyone can register a name` + advice
		country = `mcpd.hcl:4:25: error: hook "o" may reach any host below co.uk, where anyone can register a name` + advice
	)
	for operator, want := range map[string][]string{
		"":                                       {com, github},
		"ceiling { http_hosts = [\"*:443\"] }\n": {com, github},
		"ceiling { http_hosts = [\"*:443\", \"*.github.io:443\"] }\n":     {com},
		"ceiling { http_hosts = [\"*.com:443\", \"*.GitHub.io:443\"] }\n": nil,
		operators: {com, github, country},
	} {
		got := said(configcheck.CheckHost(config(t, operator), []*definition.Definitions{tools(t, "a.hcl", granting)}, machine(nil)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-want +got)\n%s", operator, diff)
		}
	}
}

const keeping = `
tool "own" {
  allow {
    kv "a" {}
    kv "b" { scope = "server" }
  }
  run = "return kv.a && kv.b;"
}
hook "count" {
  on = ["end"]
  allow {
    kv "b" { scope = "server" }
  }
  run = "kv.b;"
}
test "own" {
  tool = "own"
  mock "kv.a" "x" { json = 1 }
  mock "kv.c" "x" { json = 1 }
  expect { text = "x" }
}
`

func TestCeiling_kvScopes(t *testing.T) {
	files := []*definition.Definitions{tools(t, "a.hcl", keeping)}
	const unknown = `tool "own" is not granted kv.c, so this mock is never used`
	for _, c := range []struct {
		ceiling string
		want    []string
	}{
		{``, []string{unknown}},
		{`ceiling { kv = ["tool", "server"] }`, []string{unknown}},
		{`ceiling { kv = ["tool", "session"] }`, []string{
			`tool "own" stores values in the scope "server", which the ceiling does not allow`,
			`hook "count" stores values in the scope "server", which the ceiling does not allow`, unknown,
		}},
		{`ceiling { kv = [] }`, []string{
			`tool "own" stores values in the scope "tool", which the ceiling does not allow`,
			`tool "own" stores values in the scope "server", which the ceiling does not allow`,
			`hook "count" stores values in the scope "server", which the ceiling does not allow`, unknown,
		}},
	} {
		var got []string
		for _, p := range configcheck.Check(config(t, c.ceiling+"\n"), files, configcheck.External{}).Sort() {
			got = append(got, p.Summary)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.ceiling, diff)
		}
	}
}
