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
	// seq is the number of the last host call or message.
	seq int
	// asked are the host calls that the script has no answer to yet.
	asked map[int]hostCall
	// dropped are the host calls that the script let go of, and that have not
	// ended yet. It is true of those that this run has started.
	dropped map[int]bool
	// running is how many goroutines have not yet sent their answer.
	running int
	answers chan answer
	// hostContext ends when the call does.
	hostContext context.Context
	cancel      context.CancelFunc
	timers      timers
}

// held is how many host calls run that the script did not let go of.
func (l *loop) held() int {
	held := l.running
	for _, started := range l.dropped {
		if started {
			held--
		}
	}
	return held
}

// settle waits until nothing is left that the body started, and returns the
// value of the promise that the body returned, or the value that it returned.
// There is none when the run is suspended.
func (r *run) settle(value goja.Value) (goja.Value, *Failure) {
	promise := jsvalue.PromiseOf(value)
	for r.failure == nil {
		if promise != nil && promise.State() == goja.PromiseStateRejected {
			return nil, r.thrown(promise.Result())
		}
		waits := promise != nil && promise.State() == goja.PromiseStatePending
		if !r.pending() && !(waits && len(r.loop.timers.list) > 0) || r.suspended() {
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
		return nil, &Failure{Kind: Thrown, Message: "the body waits for a promise that nothing can settle any more"}
	case len(r.rejected) > 0:
		return nil, r.thrown(r.rejected[0].Result())
	case promise != nil:
		return promise.Result(), nil
	}
	return value, nil
}

// pending reports whether an answer or a timer is still to come.
func (r *run) pending() bool { return len(r.loop.asked) > 0 || r.loop.timers.pending() }

// step waits for the next answer or timer, or takes it from the journal, and
// lets the script go on with it.
func (r *run) step() *Failure {
	past, ok, failure := r.book.event()
	switch {
	case failure != nil:
		return failure
	case ok && past.kind == entryFired:
		return r.fire(past.seq)
	case ok:
		return r.deliver(past.given())
	}
	if arrived, ok := r.book.arrival(); ok {
		return r.receive(arrived.given())
	}
	return r.wait()
}

func (r *run) wait() *Failure {
	var due <-chan time.Time
	next, ticking := r.loop.timers.next()
	if ticking {
		timer := time.NewTimer(time.Until(next.due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-r.ctx.Done():
		return Over(r.ctx)
	case a := <-r.loop.answers:
		r.loop.running--
		if over := Over(r.ctx); over != nil {
			return over // the answer may say no more than that
		}
		if a.suspended {
			return nil
		}
		return r.receive(a)
	case <-due:
		if failure := r.book.write(entryRecord{kind: entryFired, seq: next.id}); failure != nil {
			return failure
		}
		return r.fire(next.id)
	}
}

func (r *run) receive(a answer) *Failure {
	if failure := r.book.write(a.record()); failure != nil {
		return failure
	}
	return r.deliver(a)
}

func (r *run) deliver(a answer) *Failure {
	if _, ok := r.loop.dropped[a.seq]; ok {
		delete(r.loop.dropped, a.seq)
		if a.panicked {
			return hostPanic("a host call")
		}
		return nil
	}
	call, ok := r.loop.asked[a.seq]
	if !ok {
		return r.book.nondeterministic("the answer is to no open host call")
	}
	delete(r.loop.asked, a.seq)
	if a.panicked {
		return hostPanic("a host call")
	}
	var err error
	if failure := r.safely(func() { err = call.settle(a) }); failure != nil {
		return failure
	}
	if err != nil && r.failure == nil {
		r.failure = r.failed(err)
	}
	return r.failure
}

// drain cancels the host calls that nobody waits for any more, and records
// how they ended. What is suspended has not ended.
func (r *run) drain() {
	l := &r.loop
	if l.cancel == nil {
		return
	}
	l.cancel()
	for ; l.running > 0; l.running-- {
		if a := <-l.answers; !a.suspended {
			_ = r.book.write(a.record()) // the call is over whatever its journal holds
		}
	}
}

// suspended reports whether only answers that come in another run can let the
// script go on.
func (r *run) suspended() bool {
	l := &r.loop
	return len(l.asked) > 0 && l.held() == 0 && !l.timers.pending() && !r.book.replaying() && len(r.book.arrived) == 0
}

type timer struct {
	id    int
	due   time.Time
	every time.Duration // 0: it fires once
	call  goja.Callable
	args  []goja.Value
	// weak says that nothing waits for the timer that could do without it.
	weak bool
}

// timers are all timers of a call, soonest first.
type timers struct {
	list []*timer
	last int // the id of the last timer
}

func (t *timers) pending() bool {
	return slices.ContainsFunc(t.list, func(t *timer) bool { return !t.weak })
}

func (t *timers) next() (*timer, bool) {
	if len(t.list) == 0 {
		return nil, false
	}
	return t.list[0], true
}

// add puts a timer behind those that fire at the same time.
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

// longestTimer is the longest delay; longer ones wait for the deadline in any case.
const longestTimer = 24 * time.Hour

// setTimer is setTimeout and, when it repeats, setInterval.
func (r *run) setTimer(call goja.FunctionCall, repeat bool) goja.Value {
	function, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.TypeError("a timer needs a function"))
	}
	delay := min(longestTimer, time.Duration(max(0, min(call.Argument(1).ToFloat(), 1e8))*1e6))
	new := &timer{call: function}
	if len(call.Arguments) > 2 {
		new.args = slices.Clone(call.Arguments[2:])
	}
	if repeat {
		new.every = max(delay, time.Millisecond)
	}
	return r.schedule(new, delay)
}

// schedule gives a timer its number, which it returns, and its time.
func (r *run) schedule(new *timer, delay time.Duration) goja.Value {
	t := &r.loop.timers
	if t.last++; t.last > r.book.limits.HostCalls {
		r.abort(limitFailure("host_calls", "the body set more than "+strconv.Itoa(r.book.limits.HostCalls)+" timers"))
		return goja.Undefined()
	}
	new.id, new.due = t.last, time.Now().Add(delay)
	t.add(new)
	return r.Runtime.ToValue(new.id)
}

func (r *run) clearTimer(call goja.FunctionCall) goja.Value {
	if id, ok := jsvalue.Finite(call.Argument(0)); ok {
		r.loop.timers.remove(int(id))
	}
	return goja.Undefined()
}

func (r *run) fire(id int) *Failure {
	t := r.loop.timers.remove(id)
	if t == nil {
		return r.book.nondeterministic("the timer was not set")
	}
	if t.every > 0 {
		t.due = time.Now().Add(t.every)
		r.loop.timers.add(t)
	}
	if _, err := t.call(goja.Undefined(), t.args...); err != nil {
		return r.failed(err)
	}
	return r.failure
}
