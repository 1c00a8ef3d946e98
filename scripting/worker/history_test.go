package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/scripting"
)

// TestProvenProgramsShareNoProcessWithOthers, also where those have all processes that
// there may be.
func TestProvenProgramsShareNoProcessWithOthers(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	of := func(program byte) need { return need{memory: e.options.Memory, program: [32]byte{program}} }
	e.history.learn(of(1).program, proven)
	e.history.learn(of(2).program, quick)
	e.history.learn(of(3).program, unruly)
	choose := func(n need) *process {
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := choose(of(3))
	if other := choose(of(4)); other != bad {
		t.Error("a program of which nothing is known does not share with one that is unruly")
	}
	alone := of(3)
	alone.alone = true
	if own := choose(alone); own == nil || own == bad {
		t.Error("what must be alone is not")
	}
	good := choose(of(1))
	if good == nil || good == bad {
		t.Fatalf("a proven program has %p, and an unruly one %p", good, bad)
	}
	if other := choose(of(2)); other != good {
		t.Error("two proven programs do not share")
	}
	release(e, good, of(1), proven)
	release(e, good, of(2), proven)
	if choose(alone) != nil {
		t.Error("programs that are not proven have more than twice as many processes")
	}
	if other := choose(of(3)); other != bad {
		t.Error("an unruly program has the last process")
	}
	if other := choose(of(1)); other != good {
		t.Error("a proven program does not find its process again")
	}
	offends := of(2)
	offends.own(e)
	e.learn(offends, unruly)
	if other := choose(of(2)); other == good {
		t.Error("a program that is not proven any more shares with one that is")
	}
}

// TestNewProgramsFindAProcessThoughProvenOnesHaveAll that they may have.
func TestNewProgramsFindAProcessThoughProvenOnesHaveAll(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	known := need{memory: e.options.Memory, program: [32]byte{1}}
	e.history.learn(known.program, proven)
	alone := known
	alone.alone = true
	for _, n := range []need{known, alone} {
		if p, err := e.choose(n); p == nil {
			t.Fatal(err)
		}
	}
	if p, _ := e.choose(alone); p != nil {
		t.Error("proven programs have more than twice as many processes")
	}
	if p, err := e.choose(need{memory: e.options.Memory, program: [32]byte{2}}); p == nil {
		t.Errorf("a new program waits: %v", err)
	}
}

// TestProvenProgramsOfEachMemoryFindAProcess, though unruly ones have all that they may
// have, and others the one beside.
func TestProvenProgramsOfEachMemoryFindAProcess(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	choose := func(n need) *process {
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := need{memory: e.options.Memory, program: [32]byte{3}, alone: true}
	e.history.learn(bad.program, unruly)
	for range 2 {
		choose(bad)
	}
	if choose(bad) != nil {
		t.Error("unruly programs have more than twice as many processes as usual")
	}
	of := func(program byte) need {
		e.history.learn([32]byte{program}, proven)
		return need{memory: e.options.Memory / int64(program), program: [32]byte{program}}
	}
	one, other := choose(of(1)), choose(of(2))
	if one == nil || other == nil {
		t.Fatalf("programs of two memories have %p and %p", one, other)
	}
	if choose(of(1)) != one || choose(of(2)) != other {
		t.Error("there is more than one process for a memory")
	}
	if choose(of(4)) != nil {
		t.Error("proven programs have more than twice as many processes as usual")
	}
}

// TestCallsGoWhereOthersHaveLeftNothingBehind, if there is such a process.
func TestCallsGoWhereOthersHaveLeftNothingBehind(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	known, other := need{memory: e.options.Memory, program: [32]byte{1}}, need{memory: e.options.Memory, program: [32]byte{2}}
	e.history.learn(known.program, quick)
	left, _ := e.choose(other)
	clean, _ := e.choose(known)
	release(e, left, other, unruly)
	release(e, clean, known, quick)
	for _, record := range []record{quick, proven} {
		e.history.learn(known.program, record)
		if p, _ := e.choose(known); p != clean || left == clean {
			t.Errorf("%d: it goes where an unruly program was", record)
		}
		release(e, clean, known, unknown)
	}
}

// TestWhatACallSaysOfItsProgram is that it is unruly only where it may be to blame.
func TestWhatACallSaysOfItsProgram(t *testing.T) {
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
		dead               *deathError
		err                error
		want               record
	}{
		"a result":                            {out: result, want: proven},
		"a result that came soon":             {out: result, quick: true, want: quick},
		"what it threw":                       {out: failed(scripting.Thrown), want: proven},
		"a limit":                             {out: failed(scripting.Limit), quick: true, want: unruly},
		"a timeout while it computed":         {out: failed(scripting.Timeout), held: true, want: unruly},
		"a timeout as soon as it came":        {out: failed(scripting.Timeout), quick: true, want: unknown},
		"a timeout while it waited":           {out: failed(scripting.Timeout), waits: true, want: unknown},
		"a client that has gone":              {out: failed(scripting.Canceled), quick: true, want: unknown},
		"one that has gone after a while":     {out: failed(scripting.Canceled), held: true, want: unknown},
		"a host that fails":                   {out: failed(scripting.HostPanic), want: unknown},
		"a fault":                             {err: errors.New("a fault"), want: unknown},
		"a death of memory":                   {dead: &deathError{exit: exit{cause: endMemory, left: 1}}, want: unruly},
		"a death of memory beside another":    {dead: &deathError{exit: exit{cause: endMemory, left: 2}}, want: unknown},
		"a death that it missed":              {dead: &deathError{exit: exit{cause: endOverdue}, missed: true}, ctx: over, held: true, want: unknown},
		"a death of another that held on":     {dead: &deathError{exit: exit{cause: endOverdue}}, held: true, want: unknown},
		"a death since it held on":            {dead: &deathError{exit: exit{cause: endOverdue}}, ctx: over, held: true, want: unruly},
		"a death since another did, too late": {dead: &deathError{exit: exit{cause: endOverdue}}, ctx: over, waits: true, want: unknown},
		"a death of memory while it waited":   {dead: &deathError{exit: exit{cause: endMemory, oldest: 1}}, waits: true, want: unknown},
		"a death while all waited":            {dead: &deathError{exit: exit{cause: endUnknown}}, waits: true, want: unknown},
	} {
		x := &execution{attempt: attempt{quick: test.quick}}
		if x.guard.ctx = test.ctx; test.ctx == nil {
			x.guard.ctx = lazyctx.WithCancel(t.Context())
		}
		if !test.waits {
			x.since.Store(10)
		}
		look := int64(10)
		if test.held {
			look += holds
		}
		if got := x.says(look, test.out, test.dead, test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestHistory_isBounded, and keeps the programs that are called.
func TestHistory_isBounded(t *testing.T) {
	var h history
	hash := func(n int) (program [32]byte) {
		binary.LittleEndian.PutUint64(program[:], uint64(n))
		return program
	}
	const programs = 5 * maxRecent
	for n := range programs {
		h.learn(hash(n), proven)
		h.learn(hash(0), proven)
	}
	for n := programs - maxRecent; n < programs; n++ {
		if !h.of(hash(n)).isProven() {
			t.Fatalf("the program %d of %d is forgotten", n, programs)
		}
	}
	if !h.of(hash(0)).isProven() {
		t.Error("a program that is called is forgotten")
	}
	if kept := len(h.recent) + len(h.old); kept > 2*maxRecent {
		t.Errorf("%d programs are kept", kept)
	}
}

// TestOffence_countsForItsOwner: after an offence the program is not proven for the owner
// of the call, and is again after a while.
func TestOffence_countsForItsOwner(t *testing.T) {
	e := executor(t, Options{})
	unwatched(e)
	p := program(t, "if (input.ends) return 1; return 'x'.repeat(1e7)")
	run := func(input string) {
		t.Helper()
		if _, err := e.Run(t.Context(), scripting.Call{Program: p, Input: []byte(input)}, silent); err != nil {
			t.Fatal(err)
		}
	}
	isProven := func(owner uint64) bool {
		e.room.mu.Lock()
		n := need{owner: e.room.owner(owner, 0), program: p.Hash()}
		e.room.mu.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.judge(&n)
		return n.record.isProven()
	}
	run(`{"ends":true}`)
	if !isProven(0) {
		t.Error("the first call does not prove it")
	}
	run(`{"ends":false}`)
	run(`{"ends":true}`)
	if isProven(0) || !isProven(1) {
		t.Errorf("after an offence it is proven for its owner: %v, and for another: %v", isProven(0), isProven(1))
	}
	e.looks.Add(remembered)
	if !isProven(0) {
		t.Error("the offence counts for ever")
	}
}
