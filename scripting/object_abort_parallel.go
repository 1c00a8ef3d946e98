package scripting

import (
	"slices"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

type abortSignal struct {
	object *goja.Object
	// reason is nil until the signal is aborted.
	reason goja.Value
	// listeners are what the script wants called, in the order of addEventListener.
	listeners []abortListener
	// follows is what is done first: requests are let go of, and signals that
	// were made of this one are aborted.
	follows []func(reason goja.Value)
	// sources are the signals that this one was made of, none of which was made
	// of others, so that nothing recurses along them.
	sources []*abortSignal
}

type abortListener struct {
	function goja.Value
	once     bool
}

// makeAbortSignal makes AbortSignal, of which scripts make none themselves.
func (r *run) makeAbortSignal() *goja.Object {
	class, prototype := r.Class("AbortSignal", func(*goja.Object, goja.ConstructorCall) {
		panic(r.TypeError("write new AbortController().signal, or AbortSignal.timeout(milliseconds)"))
	})
	r.Method(class, "abort", func(c goja.FunctionCall) goja.Value {
		s := r.newSignal()
		s.reason = r.abortReason(c.Argument(0))
		return s.object
	})
	r.Method(class, "timeout", r.signalTimeout)
	r.Method(class, "any", r.anySignal)
	r.Accessor(prototype, "aborted", func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(builtins.Self[*abortSignal](&r.Realm, c.This).reason != nil)
	}, nil)
	r.Accessor(prototype, "reason", func(c goja.FunctionCall) goja.Value {
		if reason := builtins.Self[*abortSignal](&r.Realm, c.This).reason; reason != nil {
			return reason
		}
		return goja.Undefined()
	}, nil)
	r.Method(prototype, "throwIfAborted", func(c goja.FunctionCall) goja.Value {
		if reason := builtins.Self[*abortSignal](&r.Realm, c.This).reason; reason != nil {
			panic(reason)
		}
		return goja.Undefined()
	})
	r.Method(prototype, "addEventListener", r.listen)
	r.Method(prototype, "removeEventListener", r.unlisten)
	return class
}

func (r *run) newSignal() *abortSignal {
	s := &abortSignal{object: r.Runtime.NewObject()}
	_ = s.object.SetPrototype(r.Needed("AbortSignal").Get("prototype").(*goja.Object))
	r.Bind(s.object, s)
	return s
}

func (r *run) signalOf(v goja.Value) (*abortSignal, bool) {
	o, _ := v.(*goja.Object)
	controller, ok := r.States[o].(*abortSignal)
	return controller, ok && controller.object == o
}

// abortReason is the reason that a script gives, or else an AbortError.
func (r *run) abortReason(given goja.Value) goja.Value {
	if goja.IsUndefined(given) {
		return r.namedError("AbortError", "the operation was aborted")
	}
	return given
}

func (r *run) namedError(name, message string) *goja.Object {
	o := r.Construct("Error", r.Runtime.ToValue(message))
	_ = o.DefineDataProperty("name", r.Runtime.ToValue(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// abortSignal aborts a signal. What the first listener throws that throws is
// thrown when all of them were called.
func (r *run) abortSignal(s *abortSignal, reason goja.Value) {
	if s.reason != nil {
		return
	}
	s.reason = reason
	follows, listeners := s.follows, s.listeners
	s.follows, s.listeners = nil, nil
	for _, l := range listeners {
		if !l.once {
			s.listeners = append(s.listeners, l)
		}
	}
	for _, follow := range follows {
		r.Proceed()
		follow(reason)
	}
	event := r.Runtime.NewObject()
	_ = event.Set("type", "abort")
	_ = event.Set("target", s.object)
	if f, ok := s.object.Get("onabort").(*goja.Object); ok {
		listeners = append([]abortListener{{function: f}}, listeners...)
	}
	var thrown *goja.Exception
	for _, l := range listeners {
		r.Proceed()
		call, _ := jsvalue.Callable(l.function)
		if call == nil {
			continue
		}
		if exception := r.Runtime.Try(func() { call(s.object, event) }); exception != nil && thrown == nil {
			thrown = exception
		}
	}
	if thrown != nil {
		panic(thrown)
	}
}

// listen is signal.addEventListener("abort", function, { once }).
func (r *run) listen(c goja.FunctionCall) goja.Value {
	s := builtins.Self[*abortSignal](&r.Realm, c.This)
	if _, ok := jsvalue.Callable(c.Argument(1)); !ok || builtins.TextOf(c.Argument(0)) != "abort" {
		panic(r.TypeError(`a signal has addEventListener("abort", function)`))
	}
	known := slices.ContainsFunc(s.listeners, func(l abortListener) bool { return l.function.SameAs(c.Argument(1)) })
	if known || s.reason != nil {
		return goja.Undefined()
	}
	if len(s.listeners) >= maxListeners {
		panic(r.Construct("RangeError", r.Runtime.ToValue("a signal has at most "+strconv.Itoa(maxListeners)+" listeners")))
	}
	s.listeners = append(s.listeners, abortListener{c.Argument(1), builtins.Option(c.Argument(2), "once").ToBoolean()})
	return goja.Undefined()
}

// maxListeners bounds the listeners of a signal, which are compared pairwise.
const maxListeners = 1_000

func (r *run) unlisten(c goja.FunctionCall) goja.Value {
	s := builtins.Self[*abortSignal](&r.Realm, c.This)
	s.listeners = slices.DeleteFunc(s.listeners, func(l abortListener) bool { return l.function.SameAs(c.Argument(1)) })
	return goja.Undefined()
}

// signalTimeout is AbortSignal.timeout(milliseconds). The call does not wait
// for the timer alone.
func (r *run) signalTimeout(c goja.FunctionCall) goja.Value {
	ms, ok := jsvalue.Finite(c.Argument(0))
	if !ok || ms < 0 {
		panic(r.TypeError("AbortSignal.timeout(milliseconds): a number of at least 0 is needed"))
	}
	s := r.newSignal()
	fire, _ := goja.AssertFunction(r.Function("", func(goja.FunctionCall) goja.Value {
		r.abortSignal(s, r.namedError("TimeoutError", "the operation timed out"))
		return goja.Undefined()
	}))
	r.schedule(&timer{call: fire, weak: true}, min(longestTimer, time.Duration(min(ms, 1e8)*1e6)))
	return s.object
}

func (r *run) anySignal(c goja.FunctionCall) goja.Value {
	made := r.newSignal()
	seen := map[*abortSignal]bool{}
	r.Runtime.ForOf(c.Argument(0), func(v goja.Value) bool {
		s, ok := r.signalOf(v)
		if !ok {
			panic(r.TypeError("AbortSignal.any(signals): a list of signals is needed"))
		}
		if s.reason != nil && made.reason == nil {
			made.reason = s.reason
		}
		sources := s.sources
		if len(sources) == 0 {
			sources = []*abortSignal{s}
		}
		for _, source := range sources {
			r.Proceed()
			if !seen[source] {
				seen[source] = true
				made.sources = append(made.sources, source)
			}
		}
		return true
	})
	if made.reason == nil {
		for _, source := range made.sources {
			r.Proceed()
			source.follows = append(source.follows, func(reason goja.Value) { r.abortSignal(made, reason) })
		}
	}
	return made.object
}

// joint is what parallel([…]) waits for.
type joint struct {
	// promised makes a promise of a value, and then is the method of promises: both
	// are those that the engine began with.
	class          *goja.Object
	promised, then func(this goja.Value, args ...goja.Value) goja.Value

	values          *goja.Object // the array of results, in the order of what they are of
	open            int
	failed          bool
	reason          goja.Value // what failed first
	resolve, reject func(any) error
}

func (r *run) makeParallel() *goja.Object {
	class := r.Builtin("Promise")
	promised, _ := jsvalue.Callable(class.Get("resolve"))
	then, _ := jsvalue.Callable(builtins.Option(class.Get("prototype"), "then"))
	if promised == nil || then == nil {
		panic(r.TypeError("Promise was changed"))
	}
	return r.Function("parallel", func(c goja.FunctionCall) goja.Value {
		return r.parallel(c, &joint{class: class, promised: promised, then: then})
	})
}

// parallel is parallel([promises and functions]): it calls the functions, one
// behind the other, and waits for all that they return, and for the promises.
// Its promise is fulfilled with the results in order, or rejected with what failed
// first, but not before everything has ended.
func (r *run) parallel(c goja.FunctionCall, j *joint) goja.Value {
	list, ok := c.Argument(0).(*goja.Object)
	if !ok || len(c.Arguments) != 1 || jsvalue.KindOf(list) != jsvalue.Array {
		panic(r.TypeError("parallel([…]): an array of promises, or of functions that return them, is needed"))
	}
	length := jsvalue.LengthOf(list)
	if length > int64(r.book.limits.HostCalls) {
		panic(r.RangeError("parallel([…]): the array has more than " + strconv.Itoa(r.book.limits.HostCalls) + " elements"))
	}
	items := make([]goja.Value, length)
	for i := range items {
		r.Proceed()
		if items[i] = list.Get(builtins.Index(int64(i))); items[i] == nil {
			items[i] = goja.Undefined()
		}
	}
	promise, resolve, reject := r.Runtime.NewPromise()
	j.values, j.open, j.resolve, j.reject = r.Runtime.NewArray(), len(items), resolve, reject
	for i, item := range items {
		r.Proceed()
		r.join(j, i, item)
	}
	if len(items) == 0 {
		j.settle()
	}
	return r.Runtime.ToValue(promise)
}

func (r *run) join(j *joint, i int, item goja.Value) {
	if call, ok := jsvalue.Callable(item); ok {
		if thrown := r.Runtime.Try(func() { item = call(goja.Undefined()) }); thrown != nil {
			j.ended(i, nil, thrown.Value())
			return
		}
	}
	j.then(j.promised(j.class, item),
		r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, c.Argument(0), nil); return goja.Undefined() }),
		r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, nil, c.Argument(0)); return goja.Undefined() }))
}

// ended takes in how an element has ended: with a value, or with why it failed.
func (j *joint) ended(i int, value, reason goja.Value) {
	if reason != nil && !j.failed {
		j.failed, j.reason = true, reason
	}
	if reason == nil {
		_ = j.values.DefineDataProperty(builtins.Index(int64(i)), value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	if j.open--; j.open == 0 {
		j.settle()
	}
}

func (j *joint) settle() {
	var err error
	if j.failed {
		err = j.reject(j.reason)
	} else {
		err = j.resolve(j.values)
	}
	if err != nil {
		panic(err)
	}
}
