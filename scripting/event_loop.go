package scripting

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

type loop struct {
	// seq is the number of the last host call or notification.
	seq int
	// pending has the host calls without a response.
	pending map[int]pendingCall
	// abandoned has the host calls that the script abandoned and that have not ended. The value is
	// true if this run has started the call.
	abandoned map[int]bool
	// running is the number of goroutines that have not sent their response.
	running   int
	responses chan hostResponse
	// hostContext ends when the call ends.
	hostContext context.Context
	cancel      context.CancelFunc
	timers      timers
}

// activeCalls returns the number of running host calls that are not abandoned.
func (l *loop) activeCalls() int {
	held := l.running
	for _, started := range l.abandoned {
		if started {
			held--
		}
	}
	return held
}

// runUntilSettled waits until everything that the script started has ended. It returns the returned
// value, or the value of the returned promise; nil if the run is suspended.
func (r *execution) runUntilSettled(value goja.Value) (goja.Value, *Failure) {
	promise := jsvalue.PromiseOf(value)
	for r.failure == nil {
		if promise != nil && promise.State() == goja.PromiseStateRejected {
			return nil, r.failureOf(promise.Result())
		}
		waits := promise != nil && promise.State() == goja.PromiseStatePending
		if !r.hasPending() && !(waits && len(r.loop.timers.list) > 0) || r.suspended() {
			break
		}
		if failure := r.step(); failure != nil {
			return nil, failure
		}
	}
	switch {
	case r.failure != nil:
		return nil, r.failure
	case r.suspended():
		return nil, nil
	case promise != nil && promise.State() == goja.PromiseStatePending:
		return nil, &Failure{Kind: Thrown, Message: "the script waits for a promise that cannot settle any more"}
	case len(r.rejected) > 0:
		return nil, r.failureOf(r.rejected[0].Result())
	case promise != nil:
		return promise.Result(), nil
	}
	return value, nil
}

// hasPending reports whether a response or a timer is still to come.
func (r *execution) hasPending() bool { return len(r.loop.pending) > 0 || r.loop.timers.pending() }

// step waits for the next response or timer, or takes it from the journal, and runs the script with
// it.
func (r *execution) step() *Failure {
	past, ok, failure := r.journal.replayEvent()
	switch {
	case failure != nil:
		return failure
	case ok && past.kind == entryTimer:
		return r.fire(past.seq)
	case ok:
		return r.deliver(past.response())
	}
	if arrived, ok := r.journal.nextBuffered(); ok {
		return r.receive(arrived.response())
	}
	return r.wait()
}

func (r *execution) wait() *Failure {
	var due <-chan time.Time
	next, ticking := r.loop.timers.next()
	if ticking {
		timer := time.NewTimer(time.Until(next.due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-r.ctx.Done():
		return ContextFailure(r.ctx)
	case a := <-r.loop.responses:
		r.loop.running--
		if over := ContextFailure(r.ctx); over != nil {
			return over // the response may only repeat this
		}
		if a.suspended {
			return nil
		}
		return r.receive(a)
	case <-due:
		if failure := r.journal.write(journalEntry{kind: entryTimer, seq: next.id}); failure != nil {
			return failure
		}
		return r.fire(next.id)
	}
}

func (r *execution) receive(a hostResponse) *Failure {
	if failure := r.journal.write(a.toEntry()); failure != nil {
		return failure
	}
	return r.deliver(a)
}

func (r *execution) deliver(a hostResponse) *Failure {
	if _, ok := r.loop.abandoned[a.seq]; ok {
		delete(r.loop.abandoned, a.seq)
		if a.panicked {
			return hostPanic("a host call")
		}
		return nil
	}
	call, ok := r.loop.pending[a.seq]
	if !ok {
		return r.journal.nondeterministic("the response is for no pending host call")
	}
	delete(r.loop.pending, a.seq)
	if a.panicked {
		return hostPanic("a host call")
	}
	var err error
	if failure := r.catchThrow(func() { err = call.settle(a) }); failure != nil {
		return failure
	}
	if err != nil && r.failure == nil {
		r.failure = r.failureOfError(err)
	}
	return r.failure
}

// cancelPending cancels the running host calls and records their responses. Suspended calls have no
// response.
func (r *execution) cancelPending() {
	l := &r.loop
	if l.cancel == nil {
		return
	}
	l.cancel()
	for ; l.running > 0; l.running-- {
		if a := <-l.responses; !a.suspended {
			_ = r.journal.write(a.toEntry()) // the call is over, whatever its journal holds
		}
	}
}

// suspended reports whether the script can continue only after a response in a later run.
func (r *execution) suspended() bool {
	l := &r.loop
	return len(l.pending) > 0 && l.activeCalls() == 0 && !l.timers.pending() && !r.journal.replaying() && len(r.journal.buffered) == 0
}

type timer struct {
	id    int
	due   time.Time
	every time.Duration // 0: fires once
	call  goja.Callable
	args  []goja.Value
	// background timers do not keep the call from ending.
	background bool
}

// timers has the timers of a call, soonest first.
type timers struct {
	list []*timer
	last int // id of the last timer
}

func (t *timers) pending() bool {
	return slices.ContainsFunc(t.list, func(t *timer) bool { return !t.background })
}

func (t *timers) next() (*timer, bool) {
	if len(t.list) == 0 {
		return nil, false
	}
	return t.list[0], true
}

// add inserts a timer after those that fire at the same time.
func (t *timers) add(new *timer) {
	i := len(t.list)
	for i > 0 && t.list[i-1].due.After(new.due) {
		i--
	}
	t.list = slices.Insert(t.list, i, new)
}

func (t *timers) remove(id int) *timer {
	i := slices.IndexFunc(t.list, func(other *timer) bool { return other.id == id })
	if i < 0 {
		return nil
	}
	found := t.list[i]
	t.list = slices.Delete(t.list, i, i+1)
	return found
}

// maxDelay is the longest delay. Longer delays exceed the deadline anyway.
const maxDelay = 24 * time.Hour

// setTimer is setTimeout and, if repeat is set, setInterval.
func (r *execution) setTimer(call goja.FunctionCall, repeat bool) goja.Value {
	function, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.TypeError("a timer needs a function"))
	}
	delay := min(maxDelay, time.Duration(max(0, min(call.Argument(1).ToFloat(), 1e8))*1e6))
	new := &timer{call: function}
	if len(call.Arguments) > 2 {
		new.args = slices.Clone(call.Arguments[2:])
	}
	if repeat {
		new.every = max(delay, time.Millisecond)
	}
	return r.schedule(new, delay)
}

// schedule sets the number and the time of a timer, and returns the number.
func (r *execution) schedule(new *timer, delay time.Duration) goja.Value {
	t := &r.loop.timers
	if t.last++; t.last > r.journal.limits.HostCalls {
		r.abort(limitFailure("host_calls", "the script set more than "+strconv.Itoa(r.journal.limits.HostCalls)+" timers"))
		return goja.Undefined()
	}
	new.id, new.due = t.last, time.Now().Add(delay)
	t.add(new)
	return r.Runtime.ToValue(new.id)
}

func (r *execution) clearTimer(call goja.FunctionCall) goja.Value {
	if id, ok := jsvalue.Finite(call.Argument(0)); ok {
		r.loop.timers.remove(int(id))
	}
	return goja.Undefined()
}

func (r *execution) fire(id int) *Failure {
	t := r.loop.timers.remove(id)
	if t == nil {
		return r.journal.nondeterministic("the timer was not set")
	}
	if t.every > 0 {
		t.due = time.Now().Add(t.every)
		r.loop.timers.add(t)
	}
	if _, err := t.call(goja.Undefined(), t.args...); err != nil {
		return r.failureOfError(err)
	}
	return r.failure
}
