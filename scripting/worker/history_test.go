package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/scripting"
)

// TestRating_separateProcesses, even if the others have all processes.
func TestRating_separateProcesses(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	of := func(program byte) requirements {
		return requirements{memory: e.options.Memory, program: [32]byte{program}}
	}
	e.history.update(of(1).program, trusted)
	e.history.update(of(2).program, fast)
	e.history.update(of(3).program, misbehaved)
	choose := func(n requirements) *process {
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := choose(of(3))
	if other := choose(of(4)); other != bad {
		t.Error("an unrated program does not share a process with a misbehaved one")
	}
	alone := of(3)
	alone.exclusive = true
	if own := choose(alone); own == nil || own == bad {
		t.Error("an exclusive call is not alone")
	}
	good := choose(of(1))
	if good == nil || good == bad {
		t.Fatalf("a trusted program has %p, and a misbehaved one %p", good, bad)
	}
	if other := choose(of(2)); other != good {
		t.Error("two trusted programs do not share a process")
	}
	release(e, good, of(1), trusted)
	release(e, good, of(2), trusted)
	if choose(alone) != nil {
		t.Error("untrusted programs have more than twice as many processes")
	}
	if other := choose(of(3)); other != bad {
		t.Error("a misbehaved program has the last process")
	}
	if other := choose(of(1)); other != good {
		t.Error("a trusted program does not find its process again")
	}
	offends := of(2)
	offends.own(e)
	e.recordRating(offends, misbehaved)
	if other := choose(of(2)); other == good {
		t.Error("a program that is no longer trusted shares a process with a trusted one")
	}
}

// TestRating_processForNewPrograms, even if trusted programs have all their processes.
func TestRating_processForNewPrograms(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	known := requirements{memory: e.options.Memory, program: [32]byte{1}}
	e.history.update(known.program, trusted)
	alone := known
	alone.exclusive = true
	for _, n := range []requirements{known, alone} {
		if p, err := e.choose(n); p == nil {
			t.Fatal(err)
		}
	}
	if p, _ := e.choose(alone); p != nil {
		t.Error("trusted programs have more than twice as many processes")
	}
	if p, err := e.choose(requirements{memory: e.options.Memory, program: [32]byte{2}}); p == nil {
		t.Errorf("a new program waits: %v", err)
	}
}

// TestRating_processForEachMemory: misbehaved programs have all their processes, and others the
// reserved one.
func TestRating_processForEachMemory(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	choose := func(n requirements) *process {
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := requirements{memory: e.options.Memory, program: [32]byte{3}, exclusive: true}
	e.history.update(bad.program, misbehaved)
	for range 2 {
		choose(bad)
	}
	if choose(bad) != nil {
		t.Error("misbehaved programs have more than twice as many processes as usual")
	}
	of := func(program byte) requirements {
		e.history.update([32]byte{program}, trusted)
		return requirements{memory: e.options.Memory / int64(program), program: [32]byte{program}}
	}
	one, other := choose(of(1)), choose(of(2))
	if one == nil || other == nil {
		t.Fatalf("programs of two memories have %p and %p", one, other)
	}
	if choose(of(1)) != one || choose(of(2)) != other {
		t.Error("there is more than one process for a memory")
	}
	if choose(of(4)) != nil {
		t.Error("trusted programs have more than twice as many processes as usual")
	}
}

// TestScheduler_prefersSameClass, if there is such a process.
func TestScheduler_prefersSameClass(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	known, other := requirements{memory: e.options.Memory, program: [32]byte{1}}, requirements{memory: e.options.Memory, program: [32]byte{2}}
	e.history.update(known.program, fast)
	left, _ := e.choose(other)
	clean, _ := e.choose(known)
	release(e, left, other, misbehaved)
	release(e, clean, known, fast)
	for _, record := range []rating{fast, trusted} {
		e.history.update(known.program, record)
		if p, _ := e.choose(known); p != clean || left == clean {
			t.Errorf("%d: it uses the process of a misbehaved program", record)
		}
		release(e, clean, known, unrated)
	}
}

// TestRating_byOutcome: a program is misbehaved only if it may be the cause.
func TestRating_byOutcome(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	failed := func(kind scripting.FailureKind) scripting.Outcome {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: kind}}
	}
	result := scripting.Outcome{Result: &scripting.Result{}}
	for name, test := range map[string]struct {
		waits, held, quick bool
		ctx                context.Context
		out                scripting.Outcome
		dead               *exitError
		err                error
		want               rating
	}{
		"a result":                          {out: result, want: trusted},
		"a fast result":                     {out: result, quick: true, want: fast},
		"an exception":                      {out: failed(scripting.Thrown), want: trusted},
		"a limit":                           {out: failed(scripting.Limit), quick: true, want: misbehaved},
		"a timeout while computing":         {out: failed(scripting.Timeout), held: true, want: misbehaved},
		"a timeout at the start":            {out: failed(scripting.Timeout), quick: true, want: unrated},
		"a timeout while waiting":           {out: failed(scripting.Timeout), waits: true, want: unrated},
		"a canceled call":                   {out: failed(scripting.Canceled), quick: true, want: unrated},
		"a call canceled after a while":     {out: failed(scripting.Canceled), held: true, want: unrated},
		"a host panic":                      {out: failed(scripting.HostPanic), want: unrated},
		"an executor error":                 {err: errors.New("a fault"), want: unrated},
		"out of memory, alone":              {dead: &exitError{exit: exit{cause: exitMemory, calls: 1}}, want: misbehaved},
		"out of memory beside another call": {dead: &exitError{exit: exit{cause: exitMemory, calls: 2}}, want: unrated},
		"an exit before the call started":   {dead: &exitError{exit: exit{cause: exitTimeout}, notStarted: true}, ctx: over, held: true, want: unrated},
		"killed for another call":           {dead: &exitError{exit: exit{cause: exitTimeout}}, held: true, want: unrated},
		"killed for this call":              {dead: &exitError{exit: exit{cause: exitTimeout}}, ctx: over, held: true, want: misbehaved},
		"killed while waiting":              {dead: &exitError{exit: exit{cause: exitTimeout}}, ctx: over, waits: true, want: unrated},
		"out of memory while waiting":       {dead: &exitError{exit: exit{cause: exitMemory, oldest: 1}}, waits: true, want: unrated},
		"exit while all calls waited":       {dead: &exitError{exit: exit{cause: exitUnknown}}, waits: true, want: unrated},
	} {
		x := &execution{attempt: attempt{fast: test.quick}}
		if x.guard.ctx = test.ctx; test.ctx == nil {
			x.guard.ctx = lazyctx.WithCancel(t.Context())
		}
		if !test.waits {
			x.runningSince.Store(10)
		}
		tick := int64(10)
		if test.held {
			tick += stuckTicks
		}
		if got := x.rate(tick, test.out, test.dead, test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestHistory_limit: programs with calls are kept.
func TestHistory_limit(t *testing.T) {
	var h history
	hash := func(n int) (program [32]byte) {
		binary.LittleEndian.PutUint64(program[:], uint64(n))
		return program
	}
	const programs = 5 * maxRecent
	for n := range programs {
		h.update(hash(n), trusted)
		h.update(hash(0), trusted)
	}
	for n := programs - maxRecent; n < programs; n++ {
		if !h.lookup(hash(n)).isTrusted() {
			t.Fatalf("program %d of %d was dropped", n, programs)
		}
	}
	if !h.lookup(hash(0)).isTrusted() {
		t.Error("a program with calls was dropped")
	}
	if kept := len(h.recent) + len(h.old); kept > 2*maxRecent {
		t.Errorf("%d programs are in the history", kept)
	}
}

// TestOffenses_perOwner: after an offense the program is not trusted for the owner, until the
// offense expires.
func TestOffenses_perOwner(t *testing.T) {
	e := executor(t, Options{})
	stopTicks(e)
	p := program(t, "if (input.ends) return 1; return 'x'.repeat(1e7)")
	run := func(input string) {
		t.Helper()
		if _, err := e.Run(t.Context(), scripting.Call{Program: p, Input: []byte(input)}, silent); err != nil {
			t.Fatal(err)
		}
	}
	isProven := func(owner uint64) bool {
		e.admission.mu.Lock()
		n := requirements{owner: e.admission.owner(owner, 0), program: p.Hash()}
		e.admission.mu.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.setRating(&n)
		return n.rating.isTrusted()
	}
	run(`{"ends":true}`)
	if !isProven(0) {
		t.Error("the program is not trusted after the first call")
	}
	run(`{"ends":false}`)
	run(`{"ends":true}`)
	if isProven(0) || !isProven(1) {
		t.Errorf("after an offense it is trusted for its owner: %v, and for another: %v", isProven(0), isProven(1))
	}
	e.ticks.Add(offenseTicks)
	if !isProven(0) {
		t.Error("the offense does not expire")
	}
}
