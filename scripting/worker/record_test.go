package worker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/internal/deadline"
	"github.com/mcpd/mcpd/scripting"
)

// TestProvenProgramsShareNoProcessWithOthers, also where those have all processes that
// there may be.
func TestProvenProgramsShareNoProcessWithOthers(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	of := func(program byte) need { return need{memory: e.options.Memory, program: [32]byte{program}} }
	e.records.learn(of(1).program, proven)
	e.records.learn(of(2).program, quick)
	e.records.learn(of(3).program, unruly)
	choose := func(n need) *peer {
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
	e.records.learn(of(2).program, unruly)
	if other := choose(of(2)); other != bad {
		t.Error("a program that is not proven any more shares with one that is")
	}
}

// TestNewProgramsFindAProcessThoughProvenOnesHaveAll that they may have.
func TestNewProgramsFindAProcessThoughProvenOnesHaveAll(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	known := need{memory: e.options.Memory, program: [32]byte{1}}
	e.records.learn(known.program, proven)
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
	choose := func(n need) *peer {
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := need{memory: e.options.Memory, program: [32]byte{3}, alone: true}
	e.records.learn(bad.program, unruly)
	for range 2 {
		choose(bad)
	}
	if choose(bad) != nil {
		t.Error("unruly programs have more than twice as many processes as usual")
	}
	of := func(program byte) need {
		e.records.learn([32]byte{program}, proven)
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
	e.records.learn(known.program, quick)
	left, _ := e.choose(other)
	clean, _ := e.choose(known)
	release(e, left, other, unruly)
	release(e, clean, known, quick)
	for _, record := range []record{quick, proven} {
		e.records.learn(known.program, record)
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
		"a death of memory":                   {dead: &deathError{cause: endMemory, left: 1}, want: unruly},
		"a death of memory beside another":    {dead: &deathError{cause: endMemory, left: 2}, want: unknown},
		"a death that it missed":              {dead: &deathError{cause: endOverdue, missed: true}, ctx: over, held: true, want: unknown},
		"a death of another that held on":     {dead: &deathError{cause: endOverdue}, held: true, want: unknown},
		"a death since it held on":            {dead: &deathError{cause: endOverdue}, ctx: over, held: true, want: unruly},
		"a death since another did, too late": {dead: &deathError{cause: endOverdue}, ctx: over, waits: true, want: unknown},
		"a death of memory while it waited":   {dead: &deathError{cause: endMemory, oldest: 1}, waits: true, want: unknown},
		"a death while all waited":            {dead: &deathError{cause: endUnknown}, waits: true, want: unknown},
	} {
		f := &flight{quick: test.quick}
		if f.guard.ctx = test.ctx; test.ctx == nil {
			f.guard.ctx = deadline.WithCancel(t.Context())
		}
		if !test.waits {
			f.since.Store(10)
		}
		look := int64(10)
		if test.held {
			look += holds
		}
		if got := f.says(look, test.out, test.dead, test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestNewProgramsDoNotHaveAllOthersForgotten: however many there are, those that are
// known lose their places one by one.
func TestNewProgramsDoNotHaveAllOthersForgotten(t *testing.T) {
	var r records
	hash := func(n int) [32]byte { return sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	for _, test := range []struct{ programs, most int }{{1000, 0}, {4096, 150}, {20_000, 20_000 - sets*places/2}} {
		for n := range test.programs {
			r.learn(hash(n), proven)
		}
		forgotten := 0
		for n := range test.programs {
			if !r.of(hash(n)).isProven() {
				forgotten++
			}
		}
		if forgotten > test.most {
			t.Errorf("of %d programs %d are forgotten, want %d at most", test.programs, forgotten, test.most)
		}
	}
}

// TestAnUnrulyProgramIsProvenByManyCalls, and one that is known for nothing by its
// first.
func TestAnUnrulyProgramIsProvenByManyCalls(t *testing.T) {
	e := executor(t, Options{})
	p := program(t, "if (input.ends) return 1; return 'x'.repeat(1e7)")
	run := func(input string) record {
		if _, err := e.Run(t.Context(), scripting.Call{Program: p, Input: []byte(input)}, silent); err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.records.of(p.Hash())
	}
	if !run(`{"ends":true}`).isProven() {
		t.Error("the first call does not prove it")
	}
	for range 2 {
		if run(`{"ends":false}`) != unruly {
			t.Error("what took too much is not unruly")
		}
		for n := range probation {
			if proves := run(`{"ends":true}`).isProven(); proves != (n == probation-1) {
				t.Errorf("after %d calls it is proven: %v", n+1, proves)
			}
		}
	}
}
