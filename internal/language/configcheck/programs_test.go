package configcheck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// installed returns a host on which every program exists, unless its name says otherwise.
func installed(links map[string]string) configcheck.HostPaths {
	places := machine(links)
	places.Program = func(path string) (string, error) {
		real, err := places.Find(path)
		if strings.Contains(path, "plain") {
			err = errors.New("it is not executable")
		}
		return real, err
	}
	return places
}

// running returns a tool file that grants a program with arguments, where {p} is a parameter,
// and a writable directory.
func running(path, argv string) string {
	param := ""
	if strings.Contains(argv, "{p}") {
		param = `param "p" { pattern = "[a-z]+" }`
	}
	return fmt.Sprintf(`tool "t" {
  allow {
    exec "x" {
      path = %q
      argv = [%s]
      %s
    }
    fs "out" {
      root = "/srv/out"
      mode = "rw"
    }
    fs "in" { root = "/srv/in" }
  }
  run = "return exec.x;"
}
`, path, argv, param)
}

// ran returns the diagnostics of a program.
func ran(t *testing.T, config *definition.Config, places configcheck.HostPaths, path, argv string) string {
	t.Helper()
	problems := configcheck.CheckHost(config, []*definition.Definitions{tools(t, "a.hcl", running(path, argv))}, places)
	if len(problems) == 0 {
		return ""
	}
	if line := problems[0].Range.Start.Line; len(problems) > 1 || line != 4 && line != 5 {
		t.Fatalf("%s: %v", path, problems)
	}
	return problems[0].Code + ": " + problems[0].Summary
}

func TestCheckHost_replaceablePrograms(t *testing.T) {
	places := installed(map[string]string{"/opt/link": "/srv/out", "/opt/tools": "/srv/mcpd/tools.d"})
	for path, want := range map[string]string{
		"/usr/bin/git": "", "/srv/in/git": "", "/srv/outside/git": "",
		"/srv/mcpd/tools.d/run.sh": `bad-grant: tool "t" runs a program in the tools directory`,
		"/opt/tools/run.sh":        `bad-grant: tool "t" runs a program in the tools directory`,
		"/var/lib/mcpd/x":          `bad-grant: tool "t" runs a program in the state directory of mcpd`,
		"/srv/out/git":             `bad-grant: tool "t" runs a program in a directory that scripts may write to`,
		"/opt/link/bin/git":        `bad-grant: tool "t" runs a program in a directory that scripts may write to`,
		"/opt/plain":               "bad-grant: this program cannot be granted: it is not executable",
		"/opt/missing":             "missing-program: the program does not exist yet",
	} {
		if got := ran(t, config(t, ""), places, path, ""); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestCeiling_programs(t *testing.T) {
	places := installed(map[string]string{"/opt/sh": "/bin/sh", "/srv/out/x": "/srv/out/x"})
	for _, c := range []struct{ ceiling, path, want string }{
		{`["/usr/bin/git"]`, "/usr/bin/git", ""},
		{`["/usr/bin/git"]`, "/usr/bin/gitk", `over-ceiling: tool "t" runs a program that the ceiling does not allow`},
		{`["/opt/*"]`, "/opt/deploy", ""},
		{`["/opt/*"]`, "/opt/sh", `over-ceiling: tool "t" runs a program that the ceiling does not allow`},
		{`["/opt/sh"]`, "/opt/sh", ""},
		{`[]`, "/usr/bin/git", `over-ceiling: tool "t" runs a program that the ceiling does not allow`},
		{`["/srv/out/git"]`, "/srv/out/git", ""},
		{`["/srv/*"]`, "/srv/out/git", `bad-grant: tool "t" runs a program in a directory that scripts may write to`},
	} {
		ceiling := config(t, "ceiling { exec_paths = "+c.ceiling+" }\n")
		if got := ran(t, ceiling, places, c.path, ""); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.ceiling, c.path, got, c.want)
		}
	}
}

func TestCheckHost_codeFromScript(t *testing.T) {
	const told = "runs code from its arguments, and a script could choose it"
	places := installed(map[string]string{"/usr/bin/awk": "/usr/bin/mawk", "/opt/tool": "/bin/busybox", "/bin/vi": "/usr/bin/vim.basic"})
	for _, c := range []struct{ path, argv, want string }{
		{"/bin/sh", `"-c", "ls"`, ""},
		{"/bin/sh", `"-c", "ls \"$1\"", "ls", "{p}"`, ""},
		{"/bin/sh", `"/opt/deploy.sh", "{p}", "--", "{p}"`, ""},
		{"/usr/bin/python3.12", `"-m", "http", "{p}"`, ""},
		{"/bin/sh", `"-c", "ls {p}"`, "sh " + told},
		{"/bin/sh", `"-c", "{p}"`, "sh " + told},
		{"/bin/sh", `"{p}"`, "sh " + told},
		{"/bin/sh", `"-x{p}"`, "sh " + told},
		{"/bin/sh", `"-c", "ls", "-{p}"`, "sh " + told},
		{"/usr/bin/python3.12", `"{p}"`, "python " + told},
		{"/usr/bin/python3", `"-c", "print('{p}')"`, "python " + told},
		{"/usr/bin/perl5.36.0", `"/opt/x.pl", "-e", "{p}"`, "perl " + told},
		{"/usr/bin/node", `"-p", "{p}"`, "node " + told},
		{"/usr/bin/awk", `"{p}", "/etc/hosts"`, "awk " + told},
		{"/usr/bin/awk", `"-F", ",", "{p}"`, "awk " + told},
		{"/usr/bin/awk", `"-F", ",", "1", "{p}"`, ""},
		{"/usr/bin/python3", `"-W", "ignore", "{p}"`, "python " + told},
		{"/usr/bin/python3", `"-W", "ignore", "-u", "/opt/x.py", "{p}"`, ""},
		{"/bin/bash", `"+o", "pipefail", "-o", "errexit", "{p}"`, "bash " + told},
		{"/usr/bin/node", `"-r", "/opt/hook.js", "{p}"`, "node " + told},
		{"/usr/bin/node", `"-r", "/opt/hook.js", "/opt/x.js", "{p}"`, ""},
		{"/usr/bin/deno", `"run", "{p}"`, "deno " + told},
		{"/usr/bin/env", `"{p}"`, "env " + told},
		{"/usr/bin/env", `"A=b", "git", "{p}"`, "env " + told},
		{"/usr/bin/env", `"git", "log"`, ""},
		{"/usr/bin/find", `"/srv", "-name", "{p}"`, "find " + told},
		{"/usr/bin/sqlite3", `"/srv/x.db", "{p}"`, "sqlite " + told},
		{"/usr/bin/make", `"-C", "/srv", "{p}"`, "make " + told},
		{"/bin/vi", `"/srv/x", "{p}"`, "vi " + told},
		{"/usr/bin/go", `"run", "{p}"`, "go " + told},
		{"/opt/tool", `"{p}"`, "busybox " + told},
		{"/lib64/ld-linux-x86-64.so.2", `"{p}"`, "ld-linux-x86-64.so " + told},
		{"/usr/bin/git", `"{p}"`, ""},
		{"/usr/bin/socat", `"-", "EXEC:{p}"`, "socat " + told},
		{"/bin/nc.openbsd", `"-l", "{p}"`, "nc.openbsd " + told},
		{"/usr/bin/ncat", `"{p}"`, "ncat " + told},
		{"/usr/bin/tmux", `"new", "{p}"`, "tmux " + told},
		{"/usr/bin/screen", `"-dm", "{p}"`, "screen " + told},
		{"/bin/tar", `"-xf", "{p}"`, "tar " + told},
		{"/bin/tar", `"-cf", "/srv/x.tar", "/srv/in"`, ""},
		{"/usr/bin/rsync", `"-a", "{p}", "/srv/in"`, "rsync " + told},
		{"/usr/bin/tsx", `"{p}"`, "tsx " + told},
		{"/usr/bin/pip3.11", `"install", "{p}"`, "pip " + told},
	} {
		got := ran(t, config(t, ""), places, c.path, c.argv)
		if want := c.want; want != "" && got != "bad-grant: "+want || want == "" && got != "" {
			t.Errorf("%s %s: got %q, want %q", c.path, c.argv, got, want)
		}
		named := config(t, fmt.Sprintf("ceiling { exec_paths = [%q] }\n", c.path))
		if got := ran(t, named, places, c.path, c.argv); got != "" {
			t.Errorf("%s, named by the ceiling: %s", c.path, got)
		}
	}
}
