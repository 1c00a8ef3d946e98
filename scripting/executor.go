package scripting

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/mcpd/mcpd/internal/base/watchdog"
)

// ErrOverloaded is the error of a call that an [Executor] refuses because earlier calls have waited
// too long. The call has had no effect.
var ErrOverloaded = errors.New("too many calls compute")

// Executor runs programs. It is safe for concurrent use.
type Executor interface {
	// Run runs c until it has a result, fails, or ctx is done. The deadline of ctx is the deadline
	// of the call. Run returns after everything that it started has ended. The error is an error of
	// the executor; all effects of the script are in the Outcome.
	Run(ctx context.Context, c Call, h Host) (Outcome, error)
	// Close releases the resources of the executor. No Run may follow.
	Close() error
}

// Call is one execution of a program.
type Call struct {
	Program *Program
	// Input is the JSON of the global input, or event for a hook. For a resource it is {"uri",
	// "params"} and for a completion {"value", "params"}, with the JSON of the globals of these
	// names. Agent and Info are the JSON of agent and call. They are read only if the program uses
	// them (see [Program.Uses]). Empty ones are empty objects.
	Input, Agent, Info []byte
	// Seed must come from [NewSeed] if the values of crypto must be unpredictable. A journal with
	// entries has its own seed. Start is the first time that the clock of the call shows, or the
	// next time at the end of a journal with entries; the zero time means now.
	Seed  Seed
	Start time.Time
	// Limits limit the call. A zero field means its default.
	Limits Limits
	// Journal records the call. If it has entries, the call is replayed from them. If nil, the call
	// uses a private journal.
	Journal *Journal
	// Owner identifies the owner of the call. An executor shares its capacity between owners, so
	// that the calls of one owner slow down calls of another at most by their share. Any number may
	// be an owner, 0 too.
	Owner uint64
	// NoShedding lets the call wait for capacity until ctx is done. Otherwise the executor may
	// refuse it with [ErrOverloaded].
	NoShedding bool
	// Tree is set if another call waits for this one. The executor does not refuse such a call when
	// it is overloaded, lets one call of the tree at a time wait for capacity, and never makes it
	// wait for resources that its tree may hold.
	Tree *CallTree
	// Depth is the number of calls that wait for this one, directly or indirectly.
	Depth int
}

// Limits limit one call.
type Limits struct {
	// Output is the maximum size of a result, in bytes of JSON. Default 4 MiB.
	Output int
	// Depth is the maximum nesting of a result. Default 64.
	Depth int
	// CallStack is the maximum depth of function calls. Default 1,000.
	CallStack int
	// HostCalls is the maximum number of host calls, notifications, timers and clock reads of a
	// call. Default 10,000.
	HostCalls int
	// Memory is the maximum memory of the worker process, in bytes, for an executor that has worker
	// processes. Zero is the default of the executor.
	Memory int64
	// Stdout is the maximum output of agent code, in bytes. Longer output is truncated, and a mark
	// says so. Default 64 KiB.
	Stdout int
	// JournalBytes is the maximum size of the journal of a call, in bytes. Default 64 MiB.
	JournalBytes int
}

func (l Limits) withDefaults() Limits {
	for _, limit := range []struct {
		value    *int
		standard int
	}{
		{&l.Output, 4 << 20}, {&l.Depth, 64}, {&l.CallStack, 1000},
		{&l.HostCalls, 10_000}, {&l.Stdout, 64 << 10}, {&l.JournalBytes, 64 << 20},
	} {
		if *limit.value <= 0 {
			*limit.value = limit.standard
		}
	}
	return l
}

// limits returns the limits of the call. Only agent code prints.
func (c Call) limits() Limits {
	l := c.Limits.withDefaults()
	if c.Program == nil || c.Program.compiled.Kind != Code {
		l.Stdout = 0
	}
	return l
}

// CallTree identifies a call and all calls nested in it. A parent holds resources while its
// children run, so an executor admits nested calls beyond its normal limits. It is safe for
// concurrent use.
type CallTree struct{ slot chan struct{} }

// NewCallTree returns a tree without calls.
func NewCallTree() *CallTree { return &CallTree{make(chan struct{}, 1)} }

// Acquire waits until no other call of the tree waits for capacity, so that a call with many
// children occupies one place in the queue. done releases the place. The error is the error of ctx.
func (k *CallTree) Acquire(ctx context.Context) (done func(), err error) {
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Workers is the state of the worker processes of an executor.
type Workers struct {
	// Processes is the number of running processes, without the spare.
	Processes int
	// Calls is the number of calls in the processes. Computing is the number of these that do not
	// wait for their host.
	Calls, Computing int
	// Lost counts processes that exited unexpectedly, by cause: killed for a call that did not end,
	// for their memory, or for a violation of the protocol, and exited by themselves.
	Lost, Overdue, Memory, Protocol, Crashed uint64
	// Started counts the processes that were started.
	Started uint64
	// Waiting is the number of calls in the queue. Refused counts calls that would have started too
	// late.
	Waiting int
	Refused uint64
}

// StatsExecutor is an [Executor] with worker processes.
type StatsExecutor interface {
	Executor
	// Workers returns the state of the worker processes. It is safe for concurrent use.
	Workers() Workers
}

// Seed is the source of all randomness of a call, so that a replay repeats it.
type Seed [32]byte

// NewSeed returns an unpredictable seed.
func NewSeed() (s Seed) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// crypto returns the random stream of crypto. Other output of a call does not reveal it.
func (s Seed) crypto() *mathrand.ChaCha8 { return mathrand.NewChaCha8(s.derive("mcpd crypto ")) }

// math returns the random stream of Math.random. It is predictable from some of its output.
func (s Seed) math() *mathrand.PCG {
	d := s.derive("mcpd math ")
	return mathrand.NewPCG(binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:16]))
}

// derive returns a seed that does not reveal s.
func (s Seed) derive(purpose string) [32]byte { return sha256.Sum256(append([]byte(purpose), s[:]...)) }

// Inline returns the executor that runs scripts in this process. It is the fastest one, for trusted
// scripts: the package documentation lists what it cannot stop.
func Inline() Executor { return &inline{} }

type inline struct{ watchdog watchdog.Watchdog }

func (*inline) Close() error { return nil }

func (x *inline) Run(ctx context.Context, c Call, h Host) (out Outcome, err error) {
	if c.Program == nil {
		return Outcome{}, errors.New("run call: no program")
	}
	if failure := ContextFailure(ctx); failure != nil {
		return Outcome{Failure: failure}, nil
	}
	r := newExecution(ctx, c, h)
	defer func() {
		if bug := recover(); bug != nil {
			out, err = r.recovered(bug)
		}
		r.finish()
		out.Stdout, out.Ran = r.journal.stdout(), r.ran
		x.watchdog.Unwatch(r)
	}()
	x.watchdog.Watch(r)
	return r.outcome(), nil
}

// ContextFailure returns the failure of a call with a context that is done; nil if it is not.
func ContextFailure(ctx context.Context) *Failure {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Kind: Timeout, Message: "the deadline passed"}
	default:
		return &Failure{Kind: Canceled, Message: "the call was canceled"}
	}
}
