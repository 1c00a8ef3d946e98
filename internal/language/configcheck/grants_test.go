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

// machine is a machine on which every folder is there, but for links, which lead
// elsewhere, and what is missing.
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

// rooted is a tool file that grants a root.
func rooted(root, mode string) string {
	return "tool \"t\" {\n  allow {\n    fs \"f\" {\n      root = \"" + root + "\"\n      mode = \"" + mode + "\"\n    }\n  }\n  run = \"return fs.f;\"\n}\n"
}

// judged is what is said of a root.
func judged(t *testing.T, config *definition.Config, places configcheck.HostPaths, root, mode string) string {
	t.Helper()
	problems := configcheck.CheckHost(config, []*definition.Definitions{tools(t, "a.hcl", rooted(root, mode))}, places)
	if len(problems) == 0 {
		return ""
	}
	if len(problems) > 1 || problems[0].Range.Start.Line != 4 {
		t.Fatalf("%s: %v", root, problems)
	}
	return problems[0].Code + ": " + strings.TrimPrefix(problems[0].Summary, `tool "t" gives a script `)
}

func TestARootThatGivesTooMuchIsRefused(t *testing.T) {
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
		"/":                      "bad-grant: all files of the machine",
		"/etc":                   "bad-grant: the system's folder /etc",
		"/etc/app":               "bad-grant: the system's folder /etc",
		"/etc/../etc/":           "bad-grant: the system's folder /etc",
		"/proc/self":             "bad-grant: the system's folder /proc",
		"/dev/shm":               "bad-grant: the system's folder /dev",
		"/root/x":                "bad-grant: the system's folder /root",
		"/boot":                  "bad-grant: the system's folder /boot",
		"/sys":                   "bad-grant: the system's folder /sys",
		"/run/secrets":           "bad-grant: the system's folder /run",
		"/srv/to-etc/app":        "bad-grant: the system's folder /etc",
		"/home":                  "bad-grant: the home folder",
		"/home/ann":              "bad-grant: the home folder",
		"/data":                  "bad-grant: the home folder",
		"/data/home/ann":         "bad-grant: the home folder",
		"/home/ann/.ssh":         "bad-grant: a hidden folder of the home folder",
		"/data/home/ann/.aws/x":  "bad-grant: a hidden folder of the home folder",
		"/srv":                   "bad-grant: the folder of the tools",
		"/srv/mcpd":              "bad-grant: the folder of the tools",
		"/srv/alias":             "bad-grant: the folder of the tools",
		"/srv/mcpd/tools.d":      "bad-grant: the folder of the tools",
		"/var/lib":               "bad-grant: the system's folder /var/lib",
		"/var/lib/mcpd":          "bad-grant: the folder of mcpd's state",
		"/srv/keys":              "bad-grant: the folder of a file that holds a secret",
		"/srv/mcpd/log":          "bad-grant: the folder of the audit log",
		"/srv/alias/log":         "bad-grant: the folder of the audit log",
		"/srv/mcpd/log/x":        "",
		"/srv/mcpd/doors":        "bad-grant: the folder of a file that lets callers in",
		"/srv/tls":               "bad-grant: the folder of a file that lets callers in",
		"/srv/tls/public":        "bad-grant: the folder of a file that lets callers in",
		"/srv/ca":                "bad-grant: the folder of a file that lets callers in",
		"/home/ann/logs":         "",
		"/home/anna":             "bad-grant: the home folder of anna",
		"/home/bob":              "bad-grant: the home folder of bob",
		"/home/bob/.ssh":         "bad-grant: a hidden folder of the home folder of bob",
		"/data/home/bob/.config": "bad-grant: a hidden folder of the home folder of bob",
		"/Users/bob/.zshrc":      "bad-grant: a hidden folder of the home folder of bob",
		"/home/bob/logs":         "",
		"/Users":                 "bad-grant: the home folders of all users",
		"/srv/git/.ssh":          "bad-grant: a folder of keys, .ssh",
		"/srv/app/.aws/cli":      "bad-grant: a folder of keys, .aws",
		"/srv/app/.sshd":         "",
		"/var":                   "bad-grant: the system's folder /var",
		"/var/spool":             "bad-grant: the system's folder /var/spool",
		"/var/spool/cron/tabs":   "bad-grant: the system's folder /var/spool",
		"/var/backups":           "bad-grant: the system's folder /var/backups",
		"/var/lib/docker/x":      "bad-grant: the system's folder /var/lib/docker",
		"/var/lib/app":           "",
		"/var/log":               "",
		"/var/log/app":           "",
		"/etcetera":              "",
		"/srv/mcpd/logs":         "",
		"/srv/mcpd/tools.d/data": "",
		"/usr/share/dict":        "",
		"/srv/missing":           "missing-root: the root does not exist yet",
		"relative":               "missing-root: the root is no folder that can be used: it is relative to a file that is not on disk",
	} {
		if got := judged(t, secret, places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	for root, want := range map[string]string{
		"/srv/mcpd/tools.d/data": "bad-grant: the folder of the tools to write to",
		"/usr/share/dict":        "bad-grant: the system's folder /usr",
		"/bin":                   "bad-grant: the system's folder /bin",
		"/srv/mcpd/data":         "",
		"/tmp/x":                 "",
		"/etc":                   "bad-grant: the system's folder /etc",
		"/etc/app":               "bad-grant: the system's folder /etc",
		"/var":                   "bad-grant: the system's folder /var",
		"/var/spool/app":         "bad-grant: the system's folder /var/spool",
		"/var/log":               "bad-grant: the system's folder /var/log",
		"/var/log/app":           "",
		"/var/lib/app":           "",
	} {
		if got := judged(t, secret, places, root, "rw"); got != want {
			t.Errorf("to write to %s: got %q, want %q", root, got, want)
		}
	}
}

func TestWhoRunsTheServerDoesNotOpenTheHomesOfOthers(t *testing.T) {
	places := machine(nil)
	places.Home = "/root"
	for root, want := range map[string]string{
		"/home":          "bad-grant: the home folders of all users",
		"/home/ann":      "bad-grant: the home folder of ann",
		"/home/ann/.ssh": "bad-grant: a hidden folder of the home folder of ann",
		"/home/ann/logs": "",
	} {
		if got := judged(t, config(t, ""), places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	named := config(t, "ceiling { fs_roots = [\"/home/ann\"] }\n")
	if got := judged(t, named, places, "/home/ann", "ro"); got != "" {
		t.Errorf("what the operator names: got %q", got)
	}
}

func TestTheCeilingBoundsRoots(t *testing.T) {
	places := machine(map[string]string{"/srv/app/out": "/data/out", "/mnt/app": "/srv/app"})
	ceiling := config(t, "ceiling { fs_roots = [\"/srv/app\", \"/etc/app\", \"/tmp/missing\"] }\n")
	const over = `over-ceiling: tool "t" has a root that the operator's ceiling does not allow`
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
		"/etc/app/below": "bad-grant: the system's folder /etc",
		"/etc":           "bad-grant: the system's folder /etc",
		"/tmp/missing/x": "missing-root: the root does not exist yet",
	} {
		if got := judged(t, ceiling, places, root, "ro"); got != want {
			t.Errorf("%s: got %q, want %q", root, got, want)
		}
	}
	if got := judged(t, config(t, "ceiling { fs_roots = [] }\n"), places, "/srv/app", "ro"); got != over {
		t.Errorf("an empty list: got %q", got)
	}
	if got := judged(t, config(t, "ceiling { ask = [] }\n"), places, "/srv/app", "ro"); got != "" {
		t.Errorf("no list: got %q", got)
	}
}

func TestWhatIsGrantedOfTheMachineIsJudgedEverywhere(t *testing.T) {
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
		`tool.hcl:3:21: error: tool "t" gives a script the system's folder /etc; name a folder that holds nothing else than what the script needs; what is meant as it is, the operator names in ceiling.fs_roots`,
		`tool.hcl:4:20: error: tool "t" is granted env.TOKEN, which holds the secret "token"; use the secret in the header of a grant; what a body is to read itself, secrets { names = [...] } grants`,
		`  note mcpd.hcl:2:1: the secret`,
		`tool.hcl:4:29: error: tool "t" is granted env.LANG, which the operator's ceiling does not allow; use a variable of ceiling.env, or ask the operator to add this one`,
		`  note mcpd.hcl:1:1: the ceiling`,
	}
	if diff := cmp.Diff(wantTool, said(got)[len(said(got))-len(wantTool):]); diff != "" {
		t.Logf("all that is said: %s", strings.Join(said(got), "\n"))
		t.Errorf("of a tool (-want +got)\n%s", diff)
	}
}

// What the ceiling names is not known when it could not be parsed.
func TestCheckPlaces_incomplete(t *testing.T) {
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
	if diff := cmp.Diff(want, said(configcheck.CheckHost(operator, []*definition.Definitions{&defs}, machine(nil)))); diff != "" {
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
	for _, line := range said(configcheck.CheckHost(operator, []*definition.Definitions{&defs}, places)) {
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
	if diff := cmp.Diff(want, said(configcheck.CheckHost(operator, nil, machine(nil)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// databases is a tool file that grants a SQLite file or files.
func databases(where string) string {
	return "tool \"t\" {\n  allow {\n    sql \"d\" {\n      driver = \"sqlite\"\n" + where + "\n      statement \"s\" { query = \"SELECT 1\" }\n    }\n  }\n  run = \"return sql.d;\"\n}\n"
}

func TestADatabaseFileThatGivesTooMuchIsRefused(t *testing.T) {
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
		{none, `dsn = "/etc/shadow.db"`, `bad-grant: tool "t" gives a script the system's folder /etc`},
		{none, `dsn = "/var/lib/mcpd/state.db"`, `bad-grant: tool "t" gives a script a file of mcpd's state`},
		{none, `dsn = "/home/ann/.config/x.db"`, `bad-grant: tool "t" gives a script a hidden folder of the home folder`},
		{none, "root = \"/\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives a script all files of the machine`},
		{none, "root = \"/var/lib/mcpd\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives a script the folder of mcpd's state`},
		{none, `dsn = "/data/shop.db"`, ""},
		{none, `dsn = "/data/missing.db"`, "missing-root: the file of the database does not exist yet"},
		{none, `dsn = "/data"`, "missing-root: the dsn is a folder"},
		{own, `dsn = "/srv/data/shop.db"`, ""},
		{own, `dsn = "/etc/app.db"`, ""},
		{own, `dsn = "/srv/keys/token.db"`, `bad-grant: tool "t" gives a script the folder of a file that holds a secret`},
		{own, `dsn = "/data/shop.db"`, `over-ceiling: tool "t" has a root that the operator's ceiling does not allow`},
		{own, "root = \"/srv/data-evil\"\nglob = [\"*.db\"]", `over-ceiling: tool "t" has a root that the operator's ceiling does not allow`},
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
		t.Errorf("the ceiling says %s", got)
	}
}

func TestNoGrantIsOfADomainWhereAnyoneCanHaveAHost(t *testing.T) {
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
		advice  = `; name the hosts, or a domain that has one owner, as in "*.example.com:443"; what is meant as it is, the operator names in ceiling.http_hosts`
		com     = `a.hcl:3:48: error: tool "t" is granted every host below com, where anyone can have one` + advice
		github  = `a.hcl:3:82: error: tool "t" is granted every host below github.io, where anyone can have one` + advice
		country = `mcpd.hcl:4:25: error: hook "o" is granted every host below co.uk, where anyone can have one` + advice
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

func TestNoToolFileSharesMoreThanTheCeiling(t *testing.T) {
	files := []*definition.Definitions{tools(t, "a.hcl", keeping)}
	const unknown = `tool "own" is not granted kv.c, so nothing asks this mock`
	for _, c := range []struct {
		ceiling string
		want    []string
	}{
		{``, []string{unknown}},
		{`ceiling { kv = ["tool", "server"] }`, []string{unknown}},
		{`ceiling { kv = ["tool", "session"] }`, []string{
			`tool "own" keeps values in the scope "server", which the operator's ceiling does not allow`,
			`hook "count" keeps values in the scope "server", which the operator's ceiling does not allow`, unknown,
		}},
		{`ceiling { kv = [] }`, []string{
			`tool "own" keeps values in the scope "tool", which the operator's ceiling does not allow`,
			`tool "own" keeps values in the scope "server", which the operator's ceiling does not allow`,
			`hook "count" keeps values in the scope "server", which the operator's ceiling does not allow`, unknown,
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
