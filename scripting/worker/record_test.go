package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/deadline"
	"github.com/mcpd/mcpd/scripting"
)

// TestProvenProgramsShareNoProcessWithOthers, also where those have all processes that
// there may be.
func TestProvenProgramsShareNoProcessWithOthers(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	of := func(program byte) need { return need{memory: e.options.Memory, program: [32]byte{program}} }
	e.learn(of(1).program, proven)
	e.learn(of(2).program, quick)
	e.learn(of(3).program, unruly)
	choose := func(n need) *peer {
		p, _, err := e.choose(n)
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
	if more := choose(alone); more != nil {
		t.Error("there are more processes than twice as many")
	}
	good := choose(of(1))
	if good == nil || good == bad {
		t.Fatalf("a proven program has %p, and an unruly one %p", good, bad)
	}
	if other := choose(of(2)); other != good {
		t.Error("two proven programs do not share")
	}
	e.learn(of(2).program, unruly)
	if other := choose(of(2)); other != bad {
		t.Error("a program that is not proven any more shares with one that is")
	}
}

// TestWhatACallSaysOfItsProgram.
func TestWhatACallSaysOfItsProgram(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	failed := func(kind scripting.FailureKind) scripting.Outcome {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: kind}}
	}
	result := scripting.Outcome{Result: &scripting.Result{}}
	for name, test := range map[string]struct {
		waits, quick bool
		ctx          context.Context
		out          scripting.Outcome
		dead         *deathError
		err          error
		want         record
	}{
		"a result":                            {out: result, want: proven},
		"a result that came soon":             {out: result, quick: true, want: quick},
		"what it threw":                       {out: failed(scripting.Thrown), want: proven},
		"a limit":                             {out: failed(scripting.Limit), want: unruly},
		"a timeout while it computed":         {out: failed(scripting.Timeout), want: unruly},
		"a timeout while it waited":           {out: failed(scripting.Timeout), waits: true, want: unknown},
		"a client that has gone":              {out: failed(scripting.Canceled), want: unknown},
		"a fault":                             {err: errors.New("a fault"), want: unknown},
		"a death of memory":                   {dead: &deathError{cause: endMemory, left: 2}, want: unruly},
		"a death that it missed":              {dead: &deathError{cause: endMemory, missed: true}, want: unknown},
		"a death of another that held on":     {dead: &deathError{cause: endOverdue}, want: unknown},
		"a death since it held on":            {dead: &deathError{cause: endOverdue}, ctx: over, want: unruly},
		"a death since another did, too late": {dead: &deathError{cause: endOverdue}, ctx: over, waits: true, want: unknown},
		"a death of memory while it waited":   {dead: &deathError{cause: endMemory, oldest: 1}, waits: true, want: unknown},
	} {
		f := &flight{quick: test.quick}
		if f.guard.ctx = test.ctx; test.ctx == nil {
			f.guard.ctx = deadline.WithCancel(t.Context())
		}
		if !test.waits {
			f.since.Store(1)
		}
		if got := f.says(test.out, test.dead, test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestWhatIsKnownOfProgramsIsBounded: it is forgotten, and learned anew.
func TestWhatIsKnownOfProgramsIsBounded(t *testing.T) {
	e := executor(t, Options{})
	for n := range maxRecords + 1 {
		e.learn([32]byte{byte(n), byte(n >> 8)}, proven)
	}
	if len(e.records) != 1 {
		t.Errorf("something is known of %d programs", len(e.records))
	}
}

// TestAProgramIsProvenByItsCall, and not any more by the next that does not end.
func TestAProgramIsProvenByItsCall(t *testing.T) {
	e := executor(t, Options{})
	p := program(t, "if (input.ends) return 1; for (;;) {}")
	for _, test := range []struct {
		input string
		want  bool
	}{{`{"ends":true}`, true}, {`{"ends":false}`, false}, {`{"ends":true}`, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if test.want {
			ctx = t.Context()
		}
		if _, err := e.Run(ctx, scripting.Call{Program: p, Input: []byte(test.input)}, silent); err != nil {
			t.Error(err)
		}
		cancel()
		e.mu.Lock()
		got := e.records[p.Hash()]
		e.mu.Unlock()
		if got.isProven() != test.want {
			t.Errorf("after %s it is %d", test.input, got)
		}
	}
}
