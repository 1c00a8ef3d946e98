package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

func TestLargeBodiesAreTriedByAnotherMcpd(t *testing.T) {
	e := processEnv()
	e.name = "mcpd"
	var log bytes.Buffer
	try := trial(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", strings.Repeat("f();\n", 2000))}); err != nil || log.Len() > 0 {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}

func TestWhereNoProcessCanBeStartedBodiesAreCompiledHereAndThatIsSaid(t *testing.T) {
	e := processEnv()
	e.self = "/does/not/exist"
	var log bytes.Buffer
	try := trial(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", "")}); err != nil || !strings.Contains(log.String(), "without a trial") {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}

// TestBodiesRunHereWhereNoProcessCan, and the operator is told.
func TestBodiesRunHereWhereNoProcessCan(t *testing.T) {
	useless, err := exec.LookPath("false")
	if err != nil {
		t.Skip(err)
	}
	for _, self := range []string{"", "/does/not/exist", useless} {
		e := processEnv()
		e.self = self
		var log bytes.Buffer
		x, report := executor(e, executorWorker, worker.Options{}, slog.New(slog.NewTextHandler(&log, nil)))
		if _, apart := x.(*worker.Executor); apart || report != nil || !strings.Contains(log.String(), "bodies run in this process") || !strings.Contains(log.String(), "programs of agents are refused") {
			t.Errorf("%q: logged %q", self, log.String())
		}
	}
}

// TestWhereNoProcessCanBeStartedEveryVerbThatRunsBodiesSaysSo once, on stderr.
func TestWhereNoProcessCanBeStartedEveryVerbThatRunsBodiesSaysSo(t *testing.T) {
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
		e.self, e.stdout, e.stderr = "/does/not/exist", &out, &log
		code := run(e, append(strings.Fields(verb), "--tools", folder))
		if code != 0 || out.String() != want || strings.Count(log.String(), "bodies run in this process") != 1 {
			t.Errorf("%s ends with %d, prints %q and says %q", verb, code, out.String(), log.String())
		}
	}
}

func TestWhatConfinesTheProcessesOfBodiesIsToldAndWarnedOfWhereSomethingIsMissing(t *testing.T) {
	all := worker.Report{{Name: "seccomp", On: true}, {Name: "landlock", On: true, Detail: "6"}}
	part := worker.Report{{Name: "seccomp", On: true}, {Name: "landlock", Detail: "the kernel has none"}}
	const said = `msg="bodies run in processes of their own" "confined by"=`
	const warned = `msg="bodies are not fully confined" missing="landlock: the kernel has none" "confined by"=`
	for _, test := range []struct {
		name   string
		report worker.Report
		want   string
	}{
		{"nothing is known where bodies run in this process", nil, ""},
		{"all of it", all, "level=INFO " + said + "\"seccomp, landlock 6\"\n"},
		{"not all of it", part, "level=WARN " + warned + "seccomp\n"},
		{"none of it", part[1:], "level=WARN " + warned + "nothing\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			tellConfinement("bodies", test.report, slog.New(slog.NewTextHandler(&log, nil)))
			if _, got, _ := strings.Cut(log.String(), " "); got != test.want {
				t.Errorf("logged %q, want %q", got, test.want)
			}
		})
	}
}

func TestATrialThatWasPossibleStaysNeeded(t *testing.T) {
	noProcess := errors.New("no process")
	answers := []error{noProcess, worker.ErrLost, noProcess, nil}
	want := []error{nil, worker.ErrLost, noProcess, nil}
	try := wherePossible(func(scripting.Source) error {
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
