package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// outcomeLedger records the events that the hooks of testdata/outcomes receive. It is
// the executor of their server, and runs scripts in worker processes.
type outcomeLedger struct {
	*worker.Executor

	mu    sync.Mutex
	calls map[string]*callEvents
	// results maps the response of a caller to the last phase of the call.
	results map[string]string
	// due counts the runs of file hooks that the events of the Go hook require, ended the
	// completed ones, and failed the failed ones including Go hooks.
	due, ended, failed int
	panics             maphash.Seed
	// release lets the runs of the lagging hook end.
	release chan struct{}
	// meeting belongs to the call whose process is to be killed.
	meeting atomic.Pointer[blockedCall]
	// closed reports whether the executor is closed. early counts due hook runs that
	// had not ended by then; lost names the hooks that started later.
	closed bool
	early  int
	lost   []string
}

// callEvents holds the events of one call.
type callEvents struct {
	first call.Event
	last  call.Event
	// phases are those of the Go hook, begun those that each file hook started for, and
	// noted those that the hook "all" completed for.
	phases []string
	begun  map[string][]string
	noted  []string
}

func newOutcomeLedger(x *worker.Executor) *outcomeLedger {
	return &outcomeLedger{Executor: x, calls: map[string]*callEvents{}, results: map[string]string{}, panics: maphash.MakeSeed(), release: make(chan struct{})}
}

// of returns the events of a call. The caller must hold mu.
func (l *outcomeLedger) of(id string) *callEvents {
	told := l.calls[id]
	if told == nil {
		told = &callEvents{begun: map[string][]string{}}
		l.calls[id] = told
	}
	return told
}

// phaseOf identifies a final phase by its code and outcome.
func phaseOf(e call.Event) string {
	switch {
	case e.Err != nil:
		return string(e.Phase) + " " + string(e.Err.Code)
	case e.Outcome != "":
		return string(e.Phase) + " " + e.Outcome
	}
	return string(e.Phase)
}

// wanted returns the names of the file hooks that must receive an event.
func wanted(e call.Event) []string {
	hooks := []string{"all"}
	if e.Tool == "big" {
		hooks = append(hooks, "lags")
	}
	if e.Tool == "throws" && e.Phase == call.Failed {
		hooks = append(hooks, "fails")
	}
	return hooks
}

// hook is a Go hook. It sometimes panics after its work.
func (l *outcomeLedger) hook(_ context.Context, e call.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.of(e.CallID)
	if told.phases = append(told.phases, phaseOf(e)); len(told.phases) == 1 {
		told.first = e
	}
	told.last = e
	l.due += len(wanted(e))
	if maphash.String(l.panics, e.CallID)%50 == 0 {
		l.failed++
		panic("hooks may fail")
	}
}

// Run runs a script, and records which hook starts for which event.
func (l *outcomeLedger) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	if !bytes.HasPrefix(c.Input, []byte(`{"phase":`)) {
		return l.Executor.Run(ctx, c, h)
	}
	var event struct {
		call.Event
		Err *struct{ Code call.Code } `json:"error"`
	}
	if err := json.Unmarshal(c.Input, &event); err != nil {
		return scripting.Outcome{}, err
	}
	if event.Err != nil {
		event.Event.Err = &call.Error{Code: event.Err.Code}
	}
	l.mu.Lock()
	told := l.of(event.CallID)
	told.begun[c.Program.Name()] = append(told.begun[c.Program.Name()], phaseOf(event.Event))
	if l.closed {
		l.lost = append(l.lost, c.Program.Name())
	}
	l.mu.Unlock()
	outcome, err := l.Executor.Run(ctx, c, h)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	if err != nil || outcome.Failure != nil {
		l.failed++
	}
	return outcome, err
}

// Close closes the processes. No hook may start later.
func (l *outcomeLedger) Close() error {
	l.mu.Lock()
	l.closed, l.early = true, l.due-l.ended
	l.mu.Unlock()
	return l.Executor.Close()
}

func (l *outcomeLedger) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// module is the host module that the hook "all" ends with and the hook "lags" waits
// for.
func (l *outcomeLedger) module() engine.HostModule {
	type note struct {
		ID    string `json:"id"`
		Phase string `json:"phase"`
	}
	return engine.HostModule{Name: "ledger", Functions: []engine.HostFunc{
		engine.NewHostFunc("note", func(ctx context.Context, _ engine.HostCall, in note) (struct{}, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if ctx.Err() != nil {
				return struct{}{}, ctx.Err() // the process was lost; the next run may have started
			}
			told := l.of(in.ID)
			told.noted = append(told.noted, in.Phase)
			return struct{}{}, nil
		}),
		engine.NewHostFunc("meet", func(ctx context.Context, _ engine.HostCall, _ struct{}) (struct{}, error) {
			return struct{}{}, l.meeting.Load().wait(ctx)
		}),
		engine.NewHostFunc("hold", func(ctx context.Context, _ engine.HostCall, _ struct{}) (struct{}, error) {
			select {
			case <-l.release:
				return struct{}{}, nil
			case <-ctx.Done():
				return struct{}{}, ctx.Err()
			}
		}),
	}}
}

// ran records the response of a call.
func (l *outcomeLedger) ran(r call.Result) {
	e := call.Event{Phase: call.End}
	switch {
	case r.Err != nil:
		e.Phase, e.Err = call.Failed, r.Err
	case r.Ask != nil:
		e.Outcome = "input_required"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[r.CallID] = phaseOf(e)
}

// count returns the numbers of started and of ended calls of a tool.
func (l *outcomeLedger) count(tool string) (begun, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, told := range l.calls {
		if told.first.Tool != tool {
			continue
		}
		if begun++; len(told.phases) > 1 {
			ended++
		}
	}
	return begun, ended
}

// String describes the progress of file hooks.
func (l *outcomeLedger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("of %d runs of hooks %d have ended, and %d have failed", l.due, l.ended, l.failed)
}

// settled reports whether all due hook runs have ended.
func (l *outcomeLedger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == l.due
}

// check verifies the events of hooks, and counts the outcomes.
func (l *outcomeLedger) check(t *testing.T, status engine.Status, seen map[string]int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	errors, notes := 0, 0
	for id, told := range l.calls {
		if len(told.phases) != 2 || told.phases[0] != "start" || told.phases[1] == "start" {
			t.Errorf("%s, a call of %s: the Go hook received %q", id, told.first.Tool, told.phases)
			continue
		}
		if want, known := l.results[id]; known && want != told.phases[1] {
			t.Errorf("%s, a call of %s: the caller got %q, hooks received %q", id, told.first.Tool, want, told.phases[1])
		}
		l.checkFiles(t, id, told)
		if told.last.Err != nil {
			errors++
		}
		notes += len(told.noted)
		for name, is := range everyOutcome {
			if is(told.last) {
				seen[name]++
			}
		}
	}
	for id := range l.results {
		if l.calls[id] == nil {
			t.Errorf("no hook received %s", id)
		}
	}
	if int(status.Calls) != len(l.calls) || int(status.FailedCalls) != errors {
		t.Errorf("hooks received %d calls and %d failures; the server counts %d and %d", len(l.calls), errors, status.Calls, status.FailedCalls)
	}
	if int(status.HookFailures) != l.failed {
		t.Errorf("%d hook runs failed; the server counts %d", l.failed, status.HookFailures)
	}
	if l.early != 0 {
		t.Errorf("%d hook runs had not ended when the executor closed", l.early)
	}
	if len(l.lost) > 0 {
		t.Errorf("hooks started after the executor closed: %q", l.lost)
	}
	if missing := 2*len(l.calls) - notes; missing > l.failed {
		t.Errorf("%d hook runs did not complete, but only %d failed", missing, l.failed)
	}
}

// checkFiles compares the file hooks with the events of the Go hook.
func (l *outcomeLedger) checkFiles(t *testing.T, id string, told *callEvents) {
	t.Helper()
	want := map[string][]string{}
	for _, e := range []call.Event{told.first, told.last} {
		for _, hook := range wanted(e) {
			want[hook] = append(want[hook], phaseOf(e))
		}
	}
	for hook, phases := range told.begun {
		if !slices.Equal(phases, want[hook]) {
			t.Errorf("%s, a call of %s: hook %q started for %q, want %q", id, told.first.Tool, hook, phases, want[hook])
		}
		delete(want, hook)
	}
	if len(want) > 0 {
		t.Errorf("%s, a call of %s: hooks did not start: %q", id, told.first.Tool, want)
	}
	last, _, _ := strings.Cut(told.phases[1], " ")
	if n := len(told.noted); n > 2 || n > 1 && !slices.Equal(told.noted, []string{"start", last}) || n == 1 && told.noted[0] != "start" && told.noted[0] != last {
		t.Errorf("%s, a call of %s: the hook completed for %q", id, told.first.Tool, told.noted)
	}
}

// captured names the items with captured arguments in the audit log of
// testdata/outcomes.
var captured = []string{"adds", "plan", "row"}

// auditBlock returns the audit block of a scene.
func (s *outcomeScene) auditBlock() string {
	names, _ := json.Marshal(captured) // strings always encode
	return fmt.Sprintf("audit {\n  path    = %q\n  mode    = %q\n  capture = %s\n}\n", s.auditPath(), s.auditMode(), names)
}

func (s *outcomeScene) auditPath() string { return filepath.Join(s.auditDir, "audit.jsonl") }

// auditMode is strict where calls are cut: those calls wait for their records.
func (s *outcomeScene) auditMode() audit.Mode {
	if s.cut {
		return audit.Strict
	}
	return audit.Relaxed
}

// checkAudit compares the audit log of the stopped server with the events of hooks.
// Each call has one matching record, and each call that ran a script has an earlier
// intent record.
func (s *outcomeScene) checkAudit(t *testing.T) {
	t.Helper()
	report, err := audit.Verify(s.auditPath())
	if err != nil || len(report.Findings) > 0 {
		t.Fatalf("the audit log: %v, %+v", err, report)
	}
	intents := s.intents(t)
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	written, ran := map[string]bool{}, map[string]bool{}
	strange, err := audit.Calls(s.auditPath(), 0, func(c *audit.Call) error {
		told := s.ledger.calls[c.Call]
		switch {
		case told == nil:
			t.Errorf("no hook received %s, a call of %s", c.Call, c.Name)
			return nil
		case written[c.Call]:
			t.Errorf("%s, a call of %s, has two records", c.Call, c.Name)
		}
		written[c.Call] = true
		if want := phaseOf(told.last); phaseIn(c) != want {
			t.Errorf("%s, a call of %s, is recorded as %q, but hooks received %q", c.Call, c.Name, phaseIn(c), want)
		}
		if s.auditMode() == audit.Strict && c.Outcome == audit.OutcomeOK && c.Kind != "completion" && !c.Cached {
			leg := fmt.Sprint(c.Root, " ", c.Leg) // a client that repeats the state of a leg gets its result
			ran[leg] = ran[leg] || intents[c.Call]
		}
		if kept := len(c.Values) > 2; kept && !slices.Contains(captured, c.Name) {
			t.Errorf("arguments of %s were captured: %s", c.Name, c.Values)
		} else if kept {
			s.kept[c.Kind] = true
		}
		return nil
	})
	if err != nil || strange > 0 {
		t.Errorf("%d invalid lines, %v", strange, err)
	}
	for leg, intended := range ran {
		if !intended {
			t.Errorf("leg %s ran without an earlier intent record", leg)
		}
	}
	for id, told := range s.ledger.calls {
		if !written[id] {
			t.Errorf("%s, a call of %s that ended with %q, has no record", id, told.first.Tool, phaseOf(told.last))
		}
	}
}

// phaseIn is [phaseOf] for a record.
func phaseIn(c *audit.Call) string {
	e := call.Event{Phase: call.End}
	switch c.Outcome {
	case audit.OutcomeOK:
	case audit.OutcomeInputRequired:
		e.Outcome = c.Outcome
	default:
		e.Phase, e.Err = call.Failed, &call.Error{Code: call.Code(c.Outcome)}
	}
	return phaseOf(e)
}

// intents returns the calls with an intent record before their outcome record.
func (s *outcomeScene) intents(t *testing.T) map[string]bool {
	t.Helper()
	file, err := os.Open(s.auditPath())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	intents, ended := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			Kind string `json:"kind"`
			Call string `json:"call_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch {
		case line.Kind == "outcome":
			ended[line.Call] = true
		case line.Kind == "intent" && ended[line.Call]:
			t.Errorf("the intent of %s follows its outcome", line.Call)
		case line.Kind == "intent":
			intents[line.Call] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return intents
}
