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
	// listeners are the listeners of the script, in the order of addEventListener.
	listeners []abortListener
	// follows run before the listeners: they abandon requests, and abort signals that depend on
	// this one.
	follows []func(reason goja.Value)
	// sources are the signals that this one depends on. None of them depends on others, so that
	// nothing recurses.
	sources []*abortSignal
}

type abortListener struct {
	function goja.Value
	once     bool
}

// makeAbortSignal returns the class AbortSignal. Scripts cannot construct it.
func (r *execution) makeAbortSignal() *goja.Object {
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

func (r *execution) newSignal() *abortSignal {
	s := &abortSignal{object: r.Runtime.NewObject()}
	_ = s.object.SetPrototype(r.Needed("AbortSignal").Get("prototype").(*goja.Object))
	r.Bind(s.object, s)
	return s
}

func (r *execution) signalOf(v goja.Value) (*abortSignal, bool) {
	o, _ := v.(*goja.Object)
	controller, ok := r.States[o].(*abortSignal)
	return controller, ok && controller.object == o
}

// abortReason returns the reason of a script, or an AbortError by default.
func (r *execution) abortReason(given goja.Value) goja.Value {
	if goja.IsUndefined(given) {
		return r.namedError("AbortError", "the operation was aborted")
	}
	return given
}

func (r *execution) namedError(name, message string) *goja.Object {
	o := r.Construct("Error", r.Runtime.ToValue(message))
	_ = o.DefineDataProperty("name", r.Runtime.ToValue(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// abortSignal aborts a signal and calls all listeners. Then it throws the first exception of a
// listener, if there is one.
func (r *execution) abortSignal(s *abortSignal, reason goja.Value) {
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
func (r *execution) listen(c goja.FunctionCall) goja.Value {
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

// maxListeners limits the listeners of a signal, which are compared pairwise.
const maxListeners = 1_000

func (r *execution) unlisten(c goja.FunctionCall) goja.Value {
	s := builtins.Self[*abortSignal](&r.Realm, c.This)
	s.listeners = slices.DeleteFunc(s.listeners, func(l abortListener) bool { return l.function.SameAs(c.Argument(1)) })
	return goja.Undefined()
}

// signalTimeout is AbortSignal.timeout(milliseconds). The timer does not keep the call from ending.
func (r *execution) signalTimeout(c goja.FunctionCall) goja.Value {
	ms, ok := jsvalue.Finite(c.Argument(0))
	if !ok || ms < 0 {
		panic(r.TypeError("AbortSignal.timeout(milliseconds): a number of at least 0 is needed"))
	}
	s := r.newSignal()
	fire, _ := goja.AssertFunction(r.Function("", func(goja.FunctionCall) goja.Value {
		r.abortSignal(s, r.namedError("TimeoutError", "the operation timed out"))
		return goja.Undefined()
	}))
	r.schedule(&timer{call: fire, background: true}, min(maxDelay, time.Duration(min(ms, 1e8)*1e6)))
	return s.object
}

func (r *execution) anySignal(c goja.FunctionCall) goja.Value {
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
