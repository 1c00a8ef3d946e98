package builtins

import (
	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// setter is the name of the functions and traps that set prototypes, and protoName the name of the
// accessor.
const (
	setter    = "setPrototypeOf"
	protoName = "__proto__"
)

// maxPrototypes limits the length of a chain of prototypes and proxies when a prototype is set.
const maxPrototypes = 10_000

// GuardPrototypes prevents cycles of prototypes through a proxy or an object of the host. The
// engine follows such a cycle forever: no interrupt stops it, and it may overflow the stack of the
// process. The engine itself detects cycles of other objects. All functions that set prototypes are
// guarded, by whichever name a script reaches them. Nothing is guarded if the script has no such
// object. Long chains without a cycle are limited only when a prototype is set.
func (r *Realm) GuardPrototypes() {
	if !r.Program.Proxies && !r.Program.Hosted {
		return
	}
	const hidden, kept = goja.FLAG_FALSE, goja.FLAG_TRUE
	object := r.Builtin("Object")
	_ = object.DefineDataProperty(setter, r.Function(setter, func(c goja.FunctionCall) goja.Value {
		proto := r.prototypeOf(c.Argument(1))
		o, ok := c.Argument(0).(*goja.Object)
		if ok {
			r.mustSetPrototype(o, proto)
		} else if IsNothing(c.Argument(0)) {
			panic(r.TypeError("undefined and null have no prototype"))
		}
		return c.Argument(0)
	}), kept, kept, hidden)
	// The getter of the engine stays.
	_ = object.Get("prototype").(*goja.Object).DefineAccessorProperty(protoName, nil, r.Function("set "+protoName, func(c goja.FunctionCall) goja.Value {
		o, ok := c.This.(*goja.Object)
		_, some := c.Argument(0).(*goja.Object)
		if ok && (some || goja.IsNull(c.Argument(0))) {
			r.mustSetPrototype(o, r.prototypeOf(c.Argument(0)))
		}
		return goja.Undefined()
	}), kept, hidden)
	// Reflect is expensive to create, and only reachable by its name.
	if p := r.Program; p.Proxies || p.Mentioned["Reflect"] {
		reflect := r.Builtin("Reflect")
		r.engineSets, _ = jsvalue.Callable(reflect.Get(setter))
		_ = reflect.DefineDataProperty(setter, r.Function(setter, func(c goja.FunctionCall) goja.Value {
			o, ok := c.Argument(0).(*goja.Object)
			if !ok {
				panic(r.TypeError("Reflect.setPrototypeOf takes an object"))
			}
			return r.Runtime.ToValue(r.setPrototype(o, r.prototypeOf(c.Argument(1))))
		}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}

// prototypeOf returns a value as a prototype; nil for null.
func (r *Realm) prototypeOf(v goja.Value) *goja.Object {
	o, ok := v.(*goja.Object)
	if !ok && !goja.IsNull(v) {
		panic(r.TypeError("a prototype is an object or null"))
	}
	return o
}

// setPrototype sets the prototype of an object, and reports whether it could. An object that is in
// the chain of proto, or that is not extensible, keeps its prototype. Exceptions of traps are
// thrown. For a proxy without a trap, its [proxyHandler] sets the prototype of the target.
func (r *Realm) setPrototype(o, proto *goja.Object) bool {
	if o.ExportType() != jsvalue.ProxyType {
		return !r.reaches(o, proto) && o.SetPrototype(proto) == nil
	}
	to := goja.Null()
	if proto != nil {
		to = proto
	}
	return r.engineSets(goja.Undefined(), o, to).ToBoolean()
}

func (r *Realm) mustSetPrototype(o, proto *goja.Object) {
	switch {
	case r.setPrototype(o, proto):
	case r.reaches(o, proto):
		panic(r.TypeError("an object cannot be its own prototype"))
	default:
		panic(r.TypeError("this object takes no other prototype"))
	}
}

// reaches reports whether o is other, or in its chain of prototypes and proxies. It runs no user
// code, so that nothing changes meanwhile.
func (r *Realm) reaches(o, other *goja.Object) bool {
	w := &chainWalker{r: r}
	o = w.target(o)
	for p := other; p != nil; p = p.Prototype() {
		if p = w.target(p); p.SameAs(o) {
			return true
		}
		w.step()
	}
	return false
}

// chainWalker follows prototypes and proxies for a limited number of steps.
type chainWalker struct {
	r     *Realm
	steps int
}

func (w *chainWalker) step() {
	if w.steps++; w.steps > maxPrototypes {
		panic(w.r.TypeError("the chain of prototypes is too long"))
	}
}

// target returns the object behind proxies, without running user code; the proxy itself if it is
// revoked.
func (w *chainWalker) target(o *goja.Object) *goja.Object {
	for o.ExportType() == jsvalue.ProxyType {
		target := o.Export().(goja.Proxy).Target()
		if target == nil {
			return o
		}
		o = target
		w.step()
	}
	return o
}

// maxTraps limits the nesting of calls of proxy traps.
const maxTraps = 1000

// GuardProxies makes every proxy call its traps through a [proxyHandler]. The engine runs no
// instruction between native traps, or in a proxy that is its own handler: no interrupt ends a loop
// over the results of such traps, and their recursion is not limited. Nothing is guarded if the
// script cannot create a proxy.
func (r *Realm) GuardProxies() {
	if !r.Program.Proxies {
		return
	}
	const hidden, kept = goja.FLAG_FALSE, goja.FLAG_TRUE
	proxy := r.Builtin("Proxy")
	construct, _ := goja.AssertConstructor(proxy)
	revocable, _ := jsvalue.Callable(proxy.Get("revocable"))
	_ = proxy.DefineDataProperty("revocable", r.Function("revocable", func(c goja.FunctionCall) goja.Value {
		return revocable(c.This, r.guardArguments(c.Arguments)...)
	}), kept, kept, hidden)
	guarded := r.Runtime.NewProxy(proxy, &goja.ProxyTrapConfig{
		Construct: func(_ *goja.Object, args []goja.Value, newTarget *goja.Object) *goja.Object {
			made, err := construct(newTarget, r.guardArguments(args)...)
			if err != nil {
				panic(err)
			}
			return made
		},
	})
	_ = r.Runtime.GlobalObject().DefineDataProperty("Proxy", r.Runtime.ToValue(guarded), kept, kept, hidden)
}

// guardArguments returns the arguments of a proxy constructor, with a guarded handler.
func (r *Realm) guardArguments(args []goja.Value) []goja.Value {
	if len(args) < 2 {
		return args
	}
	its, ok := args[1].(*goja.Object)
	if !ok {
		return args
	}
	return []goja.Value{args[0], r.Runtime.NewDynamicObject(&proxyHandler{r, its})}
}

// proxyHandler wraps the handler of a proxy. Scripts never see it: traps are called as methods of
// the wrapped object.
type proxyHandler struct {
	r      *Realm
	target *goja.Object
}

// Get returns a trap. It looks the trap up each time, because it may be added later.
func (h *proxyHandler) Get(name string) goja.Value {
	defer h.r.enterTrap()()
	h.r.Proceed()
	trap := h.target.Get(name)
	if IsNothing(trap) {
		if name == setter {
			return h.r.Runtime.ToValue(h.setPrototype)
		}
		return goja.Undefined()
	}
	call, ok := jsvalue.Callable(trap)
	if !ok {
		return trap // the engine throws for it
	}
	return h.r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value {
		defer h.r.enterTrap()()
		return call(h.target, c.Arguments...)
	})
}

// setPrototype is the trap of handlers without one: it checks the target when its prototype is set,
// not before the handler is asked.
func (h *proxyHandler) setPrototype(c goja.FunctionCall) goja.Value {
	defer h.r.enterTrap()()
	target, _ := c.Argument(0).(*goja.Object)
	return h.r.Runtime.ToValue(h.r.setPrototype(target, h.r.prototypeOf(c.Argument(1))))
}

// Set, Has, Delete and Keys are never used: the engine only reads traps from handlers.
func (*proxyHandler) Set(string, goja.Value) bool { return false }
func (*proxyHandler) Has(string) bool             { return false }
func (*proxyHandler) Delete(string) bool          { return true }
func (*proxyHandler) Keys() []string              { return nil }

// enterTrap counts the nesting of traps. It returns the function that leaves the trap.
func (r *Realm) enterTrap() (back func()) {
	if r.traps == maxTraps {
		panic(r.Construct("RangeError", r.Runtime.ToValue("proxies call each other without end")))
	}
	r.traps++
	return r.leaveTrap
}

func (r *Realm) leaveTrap() { r.traps-- }
