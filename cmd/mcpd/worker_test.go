package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

func TestTrial_largeScript(t *testing.T) {
	t.Parallel()
	e := processEnv()
	e.process.arg0 = "mcpd"
	var log bytes.Buffer
	try := compileCheck(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", strings.Repeat("f();\n", 2000))}); err != nil || log.Len() > 0 {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}

func TestTrial_noProcess(t *testing.T) {
	e := processEnv()
	e.process.executable = "/does/not/exist"
	var log bytes.Buffer
	try := compileCheck(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", "")}); err != nil || strings.Count(log.String(), "level=WARN") != 1 {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}

// The operator gets a warning.
func TestExecutor_inlineFallback(t *testing.T) {
	t.Parallel()
	useless, err := exec.LookPath("false")
	if err != nil {
		t.Skip(err)
	}
	for _, self := range []string{"", "/does/not/exist", useless} {
		e := processEnv()
		e.process.executable = self
		var log bytes.Buffer
		x, report := executor(e, executorWorker, worker.Options{}, slog.New(slog.NewTextHandler(&log, nil)))
		if _, apart := x.(*worker.Executor); apart || report != nil || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%q: logged %q", self, log.String())
		}
	}
}

// Each verb logs one warning on stderr.
func TestVerbs_warnWithoutProcesses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := []byte(`
tool "t" { run = "return 'ran'" }
resource "r" {
  uri = "x://r"
  run = "return 'ran'"
}
prompt "p" { run = "return 'ran'" }
test "runs" {
  tool = "t"
  expect { text = "ran" }
}
`)
	if err := os.WriteFile(filepath.Join(folder, "a.hcl"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]string{"call t": "ran\n", "read x://r": "ran\n", "prompt p": "user:\nran\n", "test": "ok    t: runs\n1 passed, 0 failed\n"} {
		e := processEnv()
		var out, log bytes.Buffer
		e.process.executable, e.stdout, e.stderr = "/does/not/exist", &out, &log
		code := run(e, append(strings.Fields(verb), "--tools", folder))
		if code != 0 || out.String() != want || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%s exits with %d, prints %q and logs %q", verb, code, out.String(), log.String())
		}
	}
}

func TestTellConfinement(t *testing.T) {
	all := worker.Report{{Name: "seccomp", On: true}, {Name: "landlock", On: true, Detail: "6"}}
	part := worker.Report{{Name: "seccomp", On: true}, {Name: "landlock", Detail: "the kernel has none"}}
	for _, test := range []struct {
		name   string
		report worker.Report
		want   string
	}{
		{"inline", nil, ""},
		{"complete", all, `level=INFO .*confined_by="seccomp, landlock 6"`},
		{"partial", part, `level=WARN .*missing="landlock: the kernel has none" confined_by=seccomp`},
		{"none", part[1:], `level=WARN .*missing="landlock: the kernel has none" confined_by=nothing`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			logSandbox("scripts", test.report, slog.New(slog.NewTextHandler(&log, nil)))
			if !regexp.MustCompile(`\A(?:time=\S+ )?` + test.want + `\n?\z`).MatchString(log.String()) {
				t.Errorf("logged %q, want %q", log.String(), test.want)
			}
		})
	}
}

func TestWherePossible_requiredAfterSuccess(t *testing.T) {
	noProcess := errors.New("no process")
	answers := []error{noProcess, worker.ErrProcessDied, noProcess, nil}
	want := []error{nil, worker.ErrProcessDied, noProcess, nil}
	try := compileCheckIfAvailable(func(scripting.Source) error {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}, slog.New(slog.DiscardHandler))
	for i := range want {
		if got := try(scripting.Source{}); !errors.Is(got, want[i]) {
			t.Errorf("trial %d: %v, want %v", i, got, want[i])
		}
	}
}
