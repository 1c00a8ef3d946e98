package scripting

import (
	"slices"
	"strconv"
	"time"

	"github.com/dop251/goja"
)

// abortSignal is the Go half of an AbortSignal.
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

// makeAbortController makes AbortController.
func (r *run) makeAbortController() *goja.Object {
	class, prototype := r.class("AbortController", func(this *goja.Object, _ goja.ConstructorCall) {
		r.bind(this, r.newSignal())
	})
	r.accessor(prototype, "signal", func(c goja.FunctionCall) goja.Value { return self[*abortSignal](r, c.This).object }, nil)
	r.method(prototype, "abort", func(c goja.FunctionCall) goja.Value {
		r.abortSignal(self[*abortSignal](r, c.This), r.abortReason(c.Argument(0)))
		return goja.Undefined()
	})
	return class
}

// makeAbortSignal makes AbortSignal, of which scripts make none themselves.
func (r *run) makeAbortSignal() *goja.Object {
	class, prototype := r.class("AbortSignal", func(*goja.Object, goja.ConstructorCall) {
		panic(r.typeError("write new AbortController().signal, or AbortSignal.timeout(milliseconds)"))
	})
	r.method(class, "abort", func(c goja.FunctionCall) goja.Value {
		s := r.newSignal()
		s.reason = r.abortReason(c.Argument(0))
		return s.object
	})
	r.method(class, "timeout", r.signalTimeout)
	r.method(class, "any", r.anySignal)
	r.accessor(prototype, "aborted", func(c goja.FunctionCall) goja.Value {
		return r.rt.ToValue(self[*abortSignal](r, c.This).reason != nil)
	}, nil)
	r.accessor(prototype, "reason", func(c goja.FunctionCall) goja.Value {
		if reason := self[*abortSignal](r, c.This).reason; reason != nil {
			return reason
		}
		return goja.Undefined()
	}, nil)
	r.method(prototype, "throwIfAborted", func(c goja.FunctionCall) goja.Value {
		if reason := self[*abortSignal](r, c.This).reason; reason != nil {
			panic(reason)
		}
		return goja.Undefined()
	})
	r.method(prototype, "addEventListener", r.listen)
	r.method(prototype, "removeEventListener", r.unlisten)
	return class
}

func (r *run) newSignal() *abortSignal {
	s := &abortSignal{object: r.rt.NewObject()}
	_ = s.object.SetPrototype(r.needed("AbortSignal").Get("prototype").(*goja.Object))
	r.bind(s.object, s)
	return s
}

// signalOf returns the Go half of a signal.
func (r *run) signalOf(v goja.Value) (*abortSignal, bool) {
	o, _ := v.(*goja.Object)
	controller, ok := r.states[o].(*abortSignal)
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
	o := r.construct("Error", r.rt.ToValue(message))
	_ = o.DefineDataProperty("name", r.rt.ToValue(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
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
		r.proceed()
		follow(reason)
	}
	event := r.rt.NewObject()
	_ = event.Set("type", "abort")
	_ = event.Set("target", s.object)
	if f, ok := s.object.Get("onabort").(*goja.Object); ok {
		listeners = append([]abortListener{{function: f}}, listeners...)
	}
	var thrown *goja.Exception
	for _, l := range listeners {
		r.proceed()
		call, _ := callable(l.function)
		if call == nil {
			continue
		}
		if exception := r.rt.Try(func() { call(s.object, event) }); exception != nil && thrown == nil {
			thrown = exception
		}
	}
	if thrown != nil {
		panic(thrown)
	}
}

// listen is signal.addEventListener("abort", function, { once }).
func (r *run) listen(c goja.FunctionCall) goja.Value {
	s := self[*abortSignal](r, c.This)
	if _, ok := callable(c.Argument(1)); !ok || textOf(c.Argument(0)) != "abort" {
		panic(r.typeError(`a signal has addEventListener("abort", function)`))
	}
	known := slices.ContainsFunc(s.listeners, func(l abortListener) bool { return l.function.SameAs(c.Argument(1)) })
	if known || s.reason != nil {
		return goja.Undefined()
	}
	if len(s.listeners) >= maxListeners {
		panic(r.construct("RangeError", r.rt.ToValue("a signal has at most "+strconv.Itoa(maxListeners)+" listeners")))
	}
	s.listeners = append(s.listeners, abortListener{c.Argument(1), option(c.Argument(2), "once").ToBoolean()})
	return goja.Undefined()
}

// maxListeners bounds the listeners of a signal, which are compared pairwise.
const maxListeners = 1_000

func (r *run) unlisten(c goja.FunctionCall) goja.Value {
	s := self[*abortSignal](r, c.This)
	s.listeners = slices.DeleteFunc(s.listeners, func(l abortListener) bool { return l.function.SameAs(c.Argument(1)) })
	return goja.Undefined()
}

// signalTimeout is AbortSignal.timeout(milliseconds). The call does not wait
// for the timer alone.
func (r *run) signalTimeout(c goja.FunctionCall) goja.Value {
	ms, ok := number(c.Argument(0))
	if !ok || ms < 0 {
		panic(r.typeError("AbortSignal.timeout(milliseconds): a number of at least 0 is needed"))
	}
	s := r.newSignal()
	fire, _ := goja.AssertFunction(r.function("", func(goja.FunctionCall) goja.Value {
		r.abortSignal(s, r.namedError("TimeoutError", "the operation timed out"))
		return goja.Undefined()
	}))
	r.schedule(&timer{call: fire, weak: true}, min(longestTimer, time.Duration(min(ms, 1e8)*1e6)))
	return s.object
}

// anySignal is AbortSignal.any(signals).
func (r *run) anySignal(c goja.FunctionCall) goja.Value {
	made := r.newSignal()
	seen := map[*abortSignal]bool{}
	r.rt.ForOf(c.Argument(0), func(v goja.Value) bool {
		s, ok := r.signalOf(v)
		if !ok {
			panic(r.typeError("AbortSignal.any(signals): a list of signals is needed"))
		}
		if s.reason != nil && made.reason == nil {
			made.reason = s.reason
		}
		sources := s.sources
		if len(sources) == 0 {
			sources = []*abortSignal{s}
		}
		for _, source := range sources {
			r.proceed()
			if !seen[source] {
				seen[source] = true
				made.sources = append(made.sources, source)
			}
		}
		return true
	})
	if made.reason == nil {
		for _, source := range made.sources {
			r.proceed()
			source.follows = append(source.follows, func(reason goja.Value) { r.abortSignal(made, reason) })
		}
	}
	return made.object
}
