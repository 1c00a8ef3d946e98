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

// outcomeLedger keeps what hooks of testdata/outcomes are told, and runs bodies in
// processes of their own. It is the executor of their server.
type outcomeLedger struct {
	*worker.Executor

	mu    sync.Mutex
	calls map[string]*toldCall
	// results are the last phases of calls, by what their callers were answered.
	results map[string]string
	// due are the runs of hooks in files that the events of the Go hook ask for, and
	// ended those that have ended; of these failed have failed, with the Go hooks.
	due, ended, failed int
	panics             maphash.Seed
	// release lets the runs of the hook that lags end.
	release chan struct{}
	// meeting is of the call that is to lose its process.
	meeting atomic.Pointer[rendezvous]
	// closed says that the executor is, when early runs of hooks that were due had not
	// ended, and lost are the hooks that were begun after that.
	closed bool
	early  int
	lost   []string
}

// toldCall is what hooks were told of one call.
type toldCall struct {
	first call.Event
	last  call.Event
	// phases are those that the Go hook was told of, begun those that each hook in a
	// file was begun for, and noted those that the hook "all" ran to its end for.
	phases []string
	begun  map[string][]string
	noted  []string
}

func newOutcomeLedger(x *worker.Executor) *outcomeLedger {
	return &outcomeLedger{Executor: x, calls: map[string]*toldCall{}, results: map[string]string{}, panics: maphash.MakeSeed(), release: make(chan struct{})}
}

// of returns what was told of a call; mu is held.
func (l *outcomeLedger) of(id string) *toldCall {
	told := l.calls[id]
	if told == nil {
		told = &toldCall{begun: map[string][]string{}}
		l.calls[id] = told
	}
	return told
}

// phaseOf tells a last phase from another by its code and its outcome.
func phaseOf(e call.Event) string {
	switch {
	case e.Err != nil:
		return string(e.Phase) + " " + string(e.Err.Code)
	case e.Outcome != "":
		return string(e.Phase) + " " + e.Outcome
	}
	return string(e.Phase)
}

// wanted are the names of the hooks in files that are to be told of an event.
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

// hook is a Go hook. It panics now and then, once it has done its work.
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

// Run runs a body, and writes down which hook is begun for which event.
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

// Close closes the processes: no hook is to be begun any more.
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

// module is what the hook "all" ends with, and what the hook "lags" waits for.
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
				return struct{}{}, ctx.Err() // the run was lost with its process, and perhaps the next has begun
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

// ran writes down what the caller of a call was answered.
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

// count returns how many calls of a tool have begun, and how many of these have ended.
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

// String says how far hooks in files are.
func (l *outcomeLedger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("of %d runs of hooks %d have ended, and %d have failed", l.due, l.ended, l.failed)
}

// settled reports whether the runs of hooks that are due have ended.
func (l *outcomeLedger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == l.due
}

// check holds what hooks were told to what they are promised, and counts the outcomes.
func (l *outcomeLedger) check(t *testing.T, status engine.Status, seen map[string]int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	errors, notes := 0, 0
	for id, told := range l.calls {
		if len(told.phases) != 2 || told.phases[0] != "start" || told.phases[1] == "start" {
			t.Errorf("%s, a call of %s: the Go hook was told of %q", id, told.first.Tool, told.phases)
			continue
		}
		if want, known := l.results[id]; known && want != told.phases[1] {
			t.Errorf("%s, a call of %s: its caller was answered %q, and hooks were told of %q", id, told.first.Tool, want, told.phases[1])
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
			t.Errorf("no hook was told of %s", id)
		}
	}
	if int(status.Calls) != len(l.calls) || int(status.FailedCalls) != errors {
		t.Errorf("hooks were told of %d calls and %d failures; the server counts %d and %d", len(l.calls), errors, status.Calls, status.FailedCalls)
	}
	if int(status.HookFailures) != l.failed {
		t.Errorf("%d runs of hooks have failed; the server counts %d", l.failed, status.HookFailures)
	}
	if l.early != 0 {
		t.Errorf("%d runs of hooks had not ended when there was nothing to run them any more", l.early)
	}
	if len(l.lost) > 0 {
		t.Errorf("hooks were begun once there was nothing to run them: %q", l.lost)
	}
	if missing := 2*len(l.calls) - notes; missing > l.failed {
		t.Errorf("%d runs of the hook did not come to their end, and only %d have failed", missing, l.failed)
	}
}

// checkFiles holds the hooks in files to what the Go hook was told.
func (l *outcomeLedger) checkFiles(t *testing.T, id string, told *toldCall) {
	t.Helper()
	want := map[string][]string{}
	for _, e := range []call.Event{told.first, told.last} {
		for _, hook := range wanted(e) {
			want[hook] = append(want[hook], phaseOf(e))
		}
	}
	for hook, phases := range told.begun {
		if !slices.Equal(phases, want[hook]) {
			t.Errorf("%s, a call of %s: hook %q was begun for %q, want %q", id, told.first.Tool, hook, phases, want[hook])
		}
		delete(want, hook)
	}
	if len(want) > 0 {
		t.Errorf("%s, a call of %s: hooks were not begun: %q", id, told.first.Tool, want)
	}
	last, _, _ := strings.Cut(told.phases[1], " ")
	if n := len(told.noted); n > 2 || n > 1 && !slices.Equal(told.noted, []string{"start", last}) || n == 1 && told.noted[0] != "start" && told.noted[0] != last {
		t.Errorf("%s, a call of %s: the hook came to its end for %q", id, told.first.Tool, told.noted)
	}
}

// captured are the names of what has its arguments kept in the audit log of testdata/outcomes.
var captured = []string{"adds", "plan", "row"}

// auditBlock is the audit block of a scene.
func (s *outcomeScene) auditBlock() string {
	names, _ := json.Marshal(captured) // of texts
	return fmt.Sprintf("audit {\n  path    = %q\n  mode    = %q\n  capture = %s\n}\n", s.auditPath(), s.auditMode(), names)
}

func (s *outcomeScene) auditPath() string { return filepath.Join(s.auditDir, "audit.jsonl") }

// auditMode is strict where calls are cut: what is written down of them is waited for.
func (s *outcomeScene) auditMode() audit.Mode {
	if s.cut {
		return audit.Strict
	}
	return audit.Relaxed
}

// checkAudit holds the audit log of the server that has ended to what hooks were told: one
// record of each call says what they say, and those that ran bodies had their intent before.
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
			t.Errorf("no hook was told of %s, a call of %s", c.Call, c.Name)
			return nil
		case written[c.Call]:
			t.Errorf("%s, a call of %s, is written down twice", c.Call, c.Name)
		}
		written[c.Call] = true
		if want := phaseOf(told.last); phaseIn(c) != want {
			t.Errorf("%s, a call of %s, is written down as %q, and hooks were told of %q", c.Call, c.Name, phaseIn(c), want)
		}
		if s.auditMode() == audit.Strict && c.Outcome == audit.OutcomeOK && c.Kind != "completion" && !c.Cached {
			leg := fmt.Sprint(c.Root, " ", c.Leg) // who comes twice with the state of a leg has the answer of the first
			ran[leg] = ran[leg] || intents[c.Call]
		}
		if kept := len(c.Values) > 2; kept && !slices.Contains(captured, c.Name) {
			t.Errorf("arguments of %s are kept: %s", c.Name, c.Values)
		} else if kept {
			s.kept[c.Kind] = true
		}
		return nil
	})
	if err != nil || strange > 0 {
		t.Errorf("%d strange lines, %v", strange, err)
	}
	for leg, intended := range ran {
		if !intended {
			t.Errorf("leg %s ran, and nothing of it was written down before", leg)
		}
	}
	for id, told := range s.ledger.calls {
		if !written[id] {
			t.Errorf("%s, a call of %s which ended with %q, is not written down", id, told.first.Tool, phaseOf(told.last))
		}
	}
}

// phaseIn is [phaseOf] of a record.
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

// intents returns the calls whose intent stands before their outcome.
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
			t.Errorf("the intent of %s is behind its outcome", line.Call)
		case line.Kind == "intent":
			intents[line.Call] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return intents
}
