package configcheck_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// machine is a machine on which every folder is there, but for links, which lead
// elsewhere, and what is missing.
func machine(links map[string]string) configcheck.Places {
	return configcheck.Places{
		Tools: "/srv/mcpd/tools.d", Config: "/srv/mcpd", State: "/var/lib/mcpd", Home: "/home/ann",
		Find: func(path string) (string, error) {
			for link, to := range links {
				if rest, ok := strings.CutPrefix(path, link); ok && (rest == "" || rest[0] == '/') {
					path = to + rest
				}
			}
			switch {
			case !strings.HasPrefix(path, "/"):
				return "", errors.New("it is relative to a file that is not on the disk")
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
func judged(t *testing.T, config *hclfile.Config, places configcheck.Places, root, mode string) string {
	t.Helper()
	problems := configcheck.CheckPlaces(config, []*hclfile.Definitions{tools(t, "a.hcl", rooted(root, mode))}, places)
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
		"relative":               "missing-root: the root is no folder that can be used: it is relative to a file that is not on the disk",
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
	got := configcheck.CheckPlaces(
		config(t, "ceiling { env = [\"APP_*\"] }\nsecret \"token\" { env = \"TOKEN\" }\nhook \"h\" {\n  on = [\"end\"]\n"+allow),
		[]*hclfile.Definitions{
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
		if got := configcheck.CheckPlaces(operator, []*hclfile.Definitions{defs}, machine(nil)); got.HasErrors() == incomplete {
			t.Errorf("incomplete %t: %v", incomplete, said(got))
		}
	}
}
