package scripting

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// execution is the state of one call. It belongs to the goroutine of Run, except for channels and
// the state that interrupt sets.
type execution struct {
	// fixed at creation
	builtins.Realm
	ctx     context.Context
	call    Call
	host    Host
	started time.Time

	journal journalCursor
	loop    loop
	inputs  inputState
	// failure ends the call, once the engine has noticed the interrupt.
	failure *Failure
	// interrupted is set when the script is interrupted.
	interrupted atomic.Bool
	// rejected are the rejected promises without a handler.
	rejected []*goja.Promise
	// blocks has the content blocks of the script, and contents the results of content.structured.
	blocks   map[*goja.Object]bool
	contents map[*goja.Object]structuredContent
	// toolFunctions has the functions of tools, by tool.
	toolFunctions map[string]*goja.Object
	// stdout is the size of the output in bytes.
	stdout int
	// stacks has the call stacks of errors that were created by host calls.
	stacks map[*goja.Object][]goja.StackFrame
	// ran has the statements that ran, for a program with coverage: see [Outcome.Ran].
	ran []byte
	// input is the decoded input of the call, once a part of it is needed.
	input *goja.Object
	// globals has the globals that exist once and are needed by others.
	globals map[string]*goja.Object
}

func newExecution(ctx context.Context, c Call, h Host) *execution {
	r := &execution{
		Realm: builtins.Realm{Runtime: goja.New(), Program: &c.Program.compiled},
		ctx:   ctx, call: c, host: h, journal: newCursor(c.Journal, c.limits()), started: time.Now(),
	}
	r.Caller, r.MaxOutput, r.MaxDepth = r, r.journal.limits.Output, r.journal.limits.Depth
	if c.Start.IsZero() {
		r.call.Start = r.started
	}
	r.call.Seed = r.journal.seed(c.Seed)
	r.Runtime.SetMaxCallStackSize(r.journal.limits.CallStack)
	r.Runtime.SetParserOptions(disableEval...)
	if r.Program.Mentions("random") {
		r.Runtime.SetRandSource(rand.New(r.call.Seed.math()).Float64)
	}
	if r.Program.Mentions("Date") {
		r.Runtime.SetTimeSource(r.now)
	}
	r.Runtime.SetPromiseRejectionTracker(r.trackRejection)
	return r
}

// finish waits for everything that the call started.
func (r *execution) finish() {
	r.journal.restoreBuffered()
	r.cancelPending()
	if remote, ok := r.host.(Remote); ok {
		remote.Finish(r.journal.tail())
	}
}

// Look interrupts the script when the context has ended. A watchdog calls it.
func (r *execution) Look() bool {
	if r.ctx.Err() == nil {
		return true
	}
	r.interrupt()
	return false
}

// interrupt ends the script at its next instruction, and loops of native functions at their next
// step.
func (r *execution) interrupt() {
	r.interrupted.Store(true)
	r.Runtime.Interrupt(jsvalue.ErrStopped)
}

// Stopped reports whether the call is over. Long work outside the engine checks it often; it is
// cheap.
func (r *execution) Stopped() bool { return r.interrupted.Load() || r.failure != nil }

// abort ends the call with a failure at the next instruction of the script, which cannot catch it.
func (r *execution) abort(failure *Failure) {
	if r.failure == nil {
		r.failure = failure
	}
	r.interrupt()
}

// now returns the time of the call, in whole milliseconds. It advances with the wall clock; a
// replay shows the recorded times.
func (r *execution) now() time.Time {
	millis, failure := r.journal.clock(func() int64 { return r.call.Start.Add(time.Since(r.started)).UnixMilli() })
	if failure != nil {
		r.abort(failure)
	}
	return time.UnixMilli(millis)
}

func (r *execution) trackRejection(p *goja.Promise, operation goja.PromiseRejectionOperation) {
	if operation == goja.PromiseRejectionReject {
		r.rejected = append(r.rejected, p)
		return
	}
	for i, other := range r.rejected {
		if other == p {
			r.rejected = append(r.rejected[:i], r.rejected[i+1:]...)
			return
		}
	}
}

// CryptoRand returns the random stream of crypto.
func (r *execution) CryptoRand() *rand.ChaCha8 { return r.call.Seed.crypto() }

// outcome runs the script to its result or its suspension.
func (r *execution) outcome() Outcome {
	value, failure := r.body()
	if failure == nil {
		value, failure = r.runUntilSettled(value)
	}
	if failure == nil && r.suspended() {
		var asks []Ask
		for _, seq := range slices.Sorted(maps.Keys(r.loop.pending)) {
			payload := r.loop.pending[seq].ask
			if payload == nil {
				return Outcome{Failure: r.journal.nondeterministic("a host call has no response")}
			}
			asks = append(asks, Ask{seq, payload})
		}
		return Outcome{Suspended: asks}
	}
	if failure == nil {
		failure = r.journal.unfinished()
	}
	var result *Result
	if failure == nil {
		result, failure = r.result(value)
	}
	if failure != nil {
		return Outcome{Failure: failure}
	}
	return Outcome{Result: result}
}

// body calls the function of the script and returns its value.
func (r *execution) body() (goja.Value, *Failure) {
	compiled, err := r.Runtime.RunProgram(r.Program.Code)
	if err != nil {
		return nil, r.failureOfError(err)
	}
	function, ok := goja.AssertFunction(compiled)
	if !ok {
		return nil, &Failure{Kind: Thrown, Message: "the script is not a function"}
	}
	arguments, failure := r.arguments()
	if failure != nil {
		return nil, failure
	}
	value, err := function(goja.Undefined(), arguments...)
	if err != nil {
		return nil, r.failureOfError(err)
	}
	if r.failure != nil {
		return nil, r.failure
	}
	return value, nil
}

// recordStatement is the function of the global [compiler.RanName].
func (r *execution) recordStatement(c goja.FunctionCall) goja.Value {
	if n := c.Argument(0).ToInteger(); n >= 0 && n < int64(8*len(r.ran)) { // a script may use the global too
		r.ran[n/8] |= 1 << (n % 8)
	}
	return goja.Undefined()
}

// recovered returns the outcome for a panic: of an interrupted script, or of a bug in the engine,
// which is an error of the executor.
func (r *execution) recovered(bug any) (Outcome, error) {
	if e, ok := bug.(error); ok {
		if failure := r.uncatchable(e); failure != nil {
			return Outcome{Failure: failure}, nil
		}
	}
	return Outcome{}, fmt.Errorf("run %q: the JavaScript engine failed: %v", r.Program.Name, bug)
}
