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

// ErrOverloaded is the error of a call that an [Executor] has no room for: calls
// before it have waited too long already. Nothing of it was done.
var ErrOverloaded = errors.New("too many calls compute")

// Executor runs programs. It is safe for concurrent use.
type Executor interface {
	// Run runs c until it has a result, fails, or ctx is done: the deadline of
	// ctx is the call's. It returns after everything that it started has
	// ended. The error is the executor's own; whatever a body does is an Outcome.
	Run(ctx context.Context, c Call, h Host) (Outcome, error)
	// Close releases what the executor holds. No Run may follow.
	Close() error
}

// Call is one execution of a program.
type Call struct {
	Program *Program
	// Input is the JSON behind input, or event for a hook. For a resource it is
	// {"uri", "params"} and for a completion {"value", "params"}, the JSON
	// behind the globals of these names. Agent and Info are the JSON behind
	// agent and call. They are read only when the program uses them (see
	// [Program.Uses]). Empty ones are empty objects.
	Input, Agent, Info []byte
	// Seed is one of [NewSeed] wherever what crypto makes must be unpredictable; a
	// journal with entries has its own. Start is
	// what the call's clock shows first, or shows on when a journal with
	// entries is at its end; the zero time means now.
	Seed  Seed
	Start time.Time
	// Limits bound the call. A zero member means its default.
	Limits Limits
	// Journal records the call or, when it already holds entries, answers it.
	// Nil means that a private one is kept.
	Journal *Journal
	// Owner tells for whom the call is made: an executor shares its room between owners, so
	// that the calls of one cost those of another no more than their share. It is any number
	// that tells owners apart; 0 is an owner as others are.
	Owner uint64
	// Patient says that the call waits for room as long as ctx lets it, and is
	// not refused with [ErrOverloaded].
	NoShedding bool
	// Kin are those of a call that another one waits for; nil of any other. An
	// executor does not refuse such a call for want of room, lets one of its kin at a
	// time wait for that, and keeps it waiting for nothing that its kin may hold.
	Tree *CallTree
	// Depth is how many calls wait for this one, each for the next.
	Depth int
}

// Limits bound one call.
type Limits struct {
	// Output is the most bytes of JSON that a result may have. Default 4 MiB.
	Output int
	// Depth is how deep a result may nest. Default 64.
	Depth int
	// CallStack is how deep calls may nest. Default 1,000.
	CallStack int
	// HostCalls is how many host calls, messages, timers and clock reads a
	// call may make. Default 10,000.
	HostCalls int
	// Memory is the most bytes of memory that the process of a body may have, for
	// an executor that runs bodies in processes of their own. Default is that of
	// the executor.
	Memory int64
	// Stdout is the most bytes that code prints; what is more is left out, and a mark
	// behind them says so. Default 64 KiB.
	Stdout int
	// JournalBytes is the most bytes that a call's journal may hold. Default 64 MiB.
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

// limits returns the bounds of the call. Bodies that are no code print nothing.
func (c Call) limits() Limits {
	l := c.Limits.withDefaults()
	if c.Program == nil || c.Program.compiled.Kind != Code {
		l.Stdout = 0
	}
	return l
}

// Kin are the calls that come of one call: those that it makes, and that these
// make. Whoever of them waits for another may hold what that one needs, so that an
// executor has room for them beside its bounds. It is safe for concurrent use.
type CallTree struct{ slot chan struct{} }

// NewKin returns kin that are none yet.
func NewCallTree() *CallTree { return &CallTree{make(chan struct{}, 1)} }

// Turn waits until no other of the kin waits for room, so that a call which makes
// many stands in line with one. done ends the turn. An error is that of ctx.
func (k *CallTree) Acquire(ctx context.Context) (done func(), err error) {
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Workers are the processes of an executor at one moment.
type Workers struct {
	// Processes run calls. One that waits for the next call to need it is not counted.
	Processes int
	// Calls are under way in them; of these Computing do not wait for their host.
	Calls, Computing int
	// Lost counts processes that have ended before they were let go, by these causes:
	// killed for a call that did not end, for the memory they had, or for what they said,
	// and ended by themselves.
	Lost, Overdue, Memory, Protocol, Crashed uint64
	// Started counts the processes that were ever started.
	Started uint64
	// Waiting are the calls that wait to begin; Refused counts those that would have begun
	// too late.
	Waiting int
	Refused uint64
}

// Staffed is an [Executor] that runs bodies in processes of their own.
type StatsExecutor interface {
	Executor
	Workers() Workers
}

// Seed is what all randomness of a call comes from, so that a replay repeats it.
type Seed [32]byte

// NewSeed returns a seed that nobody can foretell.
func NewSeed() (s Seed) {
	_, _ = rand.Read(s[:]) // which never fails
	return s
}

// crypto returns the stream of what crypto makes. What others show of a call
// tells nothing about it.
func (s Seed) crypto() *mathrand.ChaCha8 { return mathrand.NewChaCha8(s.derive("mcpd crypto ")) }

// math returns the stream of Math.random, which may be foretold by who knows
// some of it.
func (s Seed) math() *mathrand.PCG {
	d := s.derive("mcpd math ")
	return mathrand.NewPCG(binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:16]))
}

// derive returns a seed from which s cannot be found.
func (s Seed) derive(purpose string) [32]byte { return sha256.Sum256(append([]byte(purpose), s[:]...)) }

// Inline returns the executor that runs bodies in this process. It is the
// fastest, and for bodies that are trusted not to attack it: the package
// documentation says what it cannot stop.
func Inline() Executor { return &inline{} }

type inline struct{ watchdog watchdog.Watchdog }

func (*inline) Close() error { return nil }

func (x *inline) Run(ctx context.Context, c Call, h Host) (out Outcome, err error) {
	if c.Program == nil {
		return Outcome{}, errors.New("run a call: no program")
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
		out.Stdout = r.journal.stdout()
		x.watchdog.Unwatch(r)
	}()
	x.watchdog.Watch(r)
	return r.outcome(), nil
}

// Over says why a call whose context is done has no result; nil when it is not done.
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
