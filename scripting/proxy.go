package scripting

import "github.com/dop251/goja"

// maxTraps bounds how deep proxies ask each other, or themselves, for what their handlers say.
const maxTraps = 1000

// guardProxies has every proxy ask its handler by way of a [handler]: the engine would ask one
// whose traps are native functions, or that is behind its own proxy, without any instruction
// between, so that no interrupt ends a loop over what such traps return, and nothing bounds
// how deep they call each other. It costs nothing where the body cannot make a proxy.
func (r *run) guardProxies() {
	if !r.program.proxies {
		return
	}
	const hidden, kept = goja.FLAG_FALSE, goja.FLAG_TRUE
	proxy := r.builtin("Proxy")
	construct, _ := goja.AssertConstructor(proxy)
	revocable, _ := callable(proxy.Get("revocable"))
	_ = proxy.DefineDataProperty("revocable", r.function("revocable", func(c goja.FunctionCall) goja.Value {
		return revocable(c.This, r.handled(c.Arguments)...)
	}), kept, kept, hidden)
	guarded := r.rt.NewProxy(proxy, &goja.ProxyTrapConfig{
		Construct: func(_ *goja.Object, args []goja.Value, newTarget *goja.Object) *goja.Object {
			made, err := construct(newTarget, r.handled(args)...)
			if err != nil {
				panic(err)
			}
			return made
		},
	})
	_ = r.rt.GlobalObject().DefineDataProperty("Proxy", r.rt.ToValue(guarded), kept, kept, hidden)
}

// handled returns the arguments that make a proxy, with a handler of ours.
func (r *run) handled(args []goja.Value) []goja.Value {
	if len(args) < 2 {
		return args
	}
	its, ok := args[1].(*goja.Object)
	if !ok {
		return args
	}
	return []goja.Value{args[0], r.rt.NewDynamicObject(&handler{r, its})}
}

// handler stands between a proxy and the object that the script gave it as its handler. No
// script ever sees it: traps are called as methods of that object.
type handler struct {
	r   *run
	its *goja.Object
}

// Get returns a trap, which is looked up each time, since it may come later.
func (h *handler) Get(name string) goja.Value {
	defer h.r.deeper()()
	h.r.proceed()
	trap := h.its.Get(name)
	if isNothing(trap) {
		if name == setter {
			return h.r.rt.ToValue(h.setPrototype)
		}
		return goja.Undefined()
	}
	call, ok := callable(trap)
	if !ok {
		return trap // which the engine throws for
	}
	return h.r.rt.ToValue(func(c goja.FunctionCall) goja.Value {
		defer h.r.deeper()()
		return call(h.its, c.Arguments...)
	})
}

// setPrototype is the trap of handlers that have none: the target is judged at the moment at
// which its prototype is set, and not before the handler was asked.
func (h *handler) setPrototype(c goja.FunctionCall) goja.Value {
	defer h.r.deeper()()
	target, _ := c.Argument(0).(*goja.Object)
	return h.r.rt.ToValue(h.r.setPrototype(target, h.r.prototypeOf(c.Argument(1))))
}

// Set, Has, Delete and Keys are those of an object without members: of handlers the engine
// only gets traps.
func (*handler) Set(string, goja.Value) bool { return false }
func (*handler) Has(string) bool             { return false }
func (*handler) Delete(string) bool          { return true }
func (*handler) Keys() []string              { return nil }

// deeper goes one step deeper into proxies, and returns what goes back.
func (r *run) deeper() (back func()) {
	if r.traps == maxTraps {
		panic(r.construct("RangeError", r.rt.ToValue("proxies ask each other without end")))
	}
	r.traps++
	return r.shallower
}

func (r *run) shallower() { r.traps-- }
