package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// TestAProcessIsGivenMoreTimeAsItSpendsIt, and none before: without its parent it
// would end.
func TestAProcessIsGivenMoreTimeAsItSpendsIt(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	e.allowance = 100 * time.Second
	if out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, silent); err != nil || out.Result == nil {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	p := e.peers[0]
	if used, err := sandbox.Spent(p.cmd.Process.Pid); err != nil || used <= 0 {
		t.Errorf("the process has spent %v: %v", used, err)
	}
	for _, step := range []struct {
		spends time.Duration
		want   int
	}{{0, 100}, {49 * time.Second, 100}, {50 * time.Second, 150}, {99 * time.Second, 150}, {10 * time.Hour, 36100}} {
		e.mu.Lock()
		e.spent = func(int) (time.Duration, error) { return step.spends, nil }
		e.mu.Unlock()
		e.look()
		limits := words(t, fmt.Sprint(p.cmd.Process.Pid, "/limits"))
		if !strings.Contains(limits, fmt.Sprintf("Max cpu time %d ", step.want)) || p.drained {
			t.Errorf("after %v, with %d seconds wanted, it has %s", step.spends, step.want, limits)
		}
	}
}

// TestAProcessThatCannotBeGivenTimeIsReplaced once its calls have ended.
func TestAProcessThatCannotBeGivenTimeIsReplaced(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	first := taken(t, e, false)
	e.mu.Lock()
	e.spent = func(int) (time.Duration, error) { return 0, errors.New("not here") }
	e.mu.Unlock()
	e.look()
	other, err := e.choose(need{memory: e.options.Memory})
	if err != nil || other == nil || other == first {
		t.Fatalf("the next call is in the same process: %v", err)
	}
	release(e, other, need{}, unknown)
}
