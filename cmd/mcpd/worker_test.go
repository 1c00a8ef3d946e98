package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os/exec"
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
		x, report := executor(e, executorWorker, slog.New(slog.NewTextHandler(&log, nil)))
		if _, apart := x.(*worker.Executor); apart || report != nil || !strings.Contains(log.String(), "bodies run in this process") {
			t.Errorf("%q: logged %q", self, log.String())
		}
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
