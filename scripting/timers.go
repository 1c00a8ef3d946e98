package scripting

import (
	"slices"
	"strconv"
	"time"

	"github.com/dop251/goja"
)

// timer is a function that waits for its time.
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
		panic(r.typeError("a timer needs a function"))
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
	if t.last++; t.last > r.limits.HostCalls {
		r.abort(limitFailure("host_calls", "the body set more than "+strconv.Itoa(r.limits.HostCalls)+" timers"))
		return goja.Undefined()
	}
	new.id, new.due = t.last, time.Now().Add(delay)
	t.add(new)
	return r.rt.ToValue(new.id)
}

func (r *run) clearTimer(call goja.FunctionCall) goja.Value {
	if id, ok := number(call.Argument(0)); ok {
		r.loop.timers.remove(int(id))
	}
	return goja.Undefined()
}

// fire calls a timer's function.
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
