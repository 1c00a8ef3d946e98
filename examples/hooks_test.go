package examples_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
)

func TestJournal_everyCall(t *testing.T) {
	var journal journal
	server := load(t, "hooks", engine.Options{Logger: slog.New(&journal)})
	ctx := t.Context()
	for _, arguments := range []map[string]any{
		{"dividend": 6, "divisor": 4, "comment": "between us"},
		{"dividend": 6, "divisor": 0},
		{"dividend": "six"},
	} {
		// The test looks at the journal, which records errors too.
		_, _ = server.Call(ctx, "divide", arguments)
	}
	// Hooks run alongside the calls. Close waits for them.
	if err := server.Close(ctx); err != nil {
		t.Fatal(err)
	}
	const who = "anonymous (says it is anonymous)"
	want := []string{
		`INFO ` + who + ` calls divide {"arguments":{"comment":"[sensitive]","dividend":6,"divisor":4}}`,
		`INFO divide returned {"quotient":1.5} to ` + who,
		`INFO ` + who + ` calls divide {"arguments":{"dividend":6,"divisor":0}}`,
		`WARN divide failed for ` + who + `: EXECUTION_ERROR: nothing can be divided by zero`,
		`INFO ` + who + ` calls divide {"arguments":{"dividend":"six"}}`,
		`WARN divide failed for ` + who + `: INVALID_INPUT: the arguments do not fit the tool's input schema: ` +
			`/dividend must be a number, not a string; /divisor is required`,
	}
	if diff := cmp.Diff(want, journal.lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHooks_testBlocks(t *testing.T) {
	passes(t, load(t, "hooks", engine.Options{}), 2)
}

// journal is a log handler that keeps the lines of hooks. Hooks of one call run in
// order, those of different calls concurrently. Sorting by call restores the order of
// the calls.
type journal struct {
	mu    sync.Mutex
	lines []string
	calls []string
}

func (*journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line, hook, call := r.Level.String()+" "+r.Message, "", ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "hook":
			hook = a.Value.String()
		case "call_id":
			call = a.Value.String()
		case "fields":
			line += " " + a.Value.String()
		}
		return true
	})
	if hook == "" {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	at := len(j.calls)
	for at > 0 && strings.Compare(j.calls[at-1], call) > 0 {
		at--
	}
	j.calls = append(j.calls[:at], append([]string{call}, j.calls[at:]...)...)
	j.lines = append(j.lines[:at], append([]string{line}, j.lines[at:]...)...)
	return nil
}

func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }
func (j *journal) WithGroup(string) slog.Handler      { return j }
