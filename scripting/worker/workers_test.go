package worker

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/scripting"
)

func TestWorkersAreCounted(t *testing.T) {
	e := executor(t, Options{})
	staffed := untimed{e}
	if diff := cmp.Diff(scripting.Workers{}, staffed.Workers()); diff != "" {
		t.Errorf("before any call (-want +got)\n%s", diff)
	}
	var during scripting.Workers
	host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		during = staffed.Workers()
		return []byte(answered), nil
	})
	if _, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return (await http.api.get('https://x/')).status")}, host); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scripting.Workers{Processes: 1, Calls: 1}, during); diff != "" {
		t.Errorf("while a call waits for its host (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(scripting.Workers{Processes: 1}, staffed.Workers()); diff != "" {
		t.Errorf("after it (-want +got)\n%s", diff)
	}
}

// untimed leaves out what spares that are started meanwhile count.
type untimed struct{ scripting.Staffed }

func (u untimed) Workers() scripting.Workers {
	now := u.Staffed.Workers()
	now.Started = 0
	return now
}

func TestDeathsAreCountedByTheirCause(t *testing.T) {
	for why, want := range map[cause]scripting.Workers{
		endOverdue: {Lost: 1, Overdue: 1}, endMemory: {Lost: 1, Memory: 1}, endProtocol: {Lost: 1, Protocol: 1}, endUnknown: {Lost: 1, Crashed: 1},
	} {
		e := executor(t, Options{})
		died := false
		host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
			if died {
				return []byte(answered), nil
			}
			died = true
			e.mu.Lock()
			p := e.peers[0]
			e.mu.Unlock()
			p.end(why)
			<-p.dead
			return []byte(answered), nil
		})
		if _, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return (await http.api.get('https://x/')).status")}, host); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		got := e.Workers()
		if got.Started < 2 {
			t.Errorf("%d processes were started", got.Started)
		}
		got.Started, got.Processes, got.Calls = 0, 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
