package builtins

import (
	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// setter is the name of the functions and traps that set prototypes, and protoName that of the
// accessor.
const (
	setter    = "setPrototypeOf"
	protoName = "__proto__"
)

// maxPrototypes bounds how many prototypes and proxies are behind each other where one is set.
const maxPrototypes = 10_000

// GuardPrototypes has nobody make an object its own prototype by way of a proxy, or of an
// object of the host: the engine looks for members through the prototypes of those without an
// end, which no interrupt stops, and which the stack of the process may not survive. Of all
// other objects it finds out itself. Whatever sets a prototype is guarded, by whichever name
// it is reached, and it costs nothing where the body has no such object. Chains that are long
// and have an end are not bounded, but where a prototype is set.
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
			panic(r.TypeError("nothing has a prototype"))
		}
		return c.Argument(0)
	}), kept, kept, hidden)
	// The getter stays that of the engine.
	_ = object.Get("prototype").(*goja.Object).DefineAccessorProperty(protoName, nil, r.Function("set "+protoName, func(c goja.FunctionCall) goja.Value {
		o, ok := c.This.(*goja.Object)
		_, some := c.Argument(0).(*goja.Object)
		if ok && (some || goja.IsNull(c.Argument(0))) {
			r.mustSetPrototype(o, r.prototypeOf(c.Argument(0)))
		}
		return goja.Undefined()
	}), kept, hidden)
	// Reflect is dear, and nothing but its name leads to it.
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

// prototypeOf returns what a value is as a prototype, nil for null.
func (r *Realm) prototypeOf(v goja.Value) *goja.Object {
	o, ok := v.(*goja.Object)
	if !ok && !goja.IsNull(v) {
		panic(r.TypeError("a prototype is an object or null"))
	}
	return o
}

// setPrototype sets the prototype of an object, and reports whether it could: an object that is
// behind the other, or takes no other prototype, keeps its own. What traps throw is thrown. Of
// a proxy without a trap it is its [handler] that sets the one of the target.
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
		panic(r.TypeError("an object cannot be behind itself"))
	default:
		panic(r.TypeError("this object takes no other prototype"))
	}
}

// isBehind reports whether an object is another one, or among what is behind that. It runs no
// user code, so that nothing changes meanwhile.
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

// walk goes from object to object, which takes a bounded number of steps.
type chainWalker struct {
	r     *Realm
	steps int
}

func (w *chainWalker) step() {
	if w.steps++; w.steps > maxPrototypes {
		panic(w.r.TypeError("too many objects are behind this one"))
	}
}

// behind returns the object behind proxies, without running user code; of one that is
// revoked it is the proxy.
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

// maxTraps bounds how deep proxies ask each other, or themselves, for what their handlers say.
const maxTraps = 1000

// GuardProxies has every proxy ask its handler by way of a [handler]: the engine would ask one
// whose traps are native functions, or that is behind its own proxy, without any instruction
// between, so that no interrupt ends a loop over what such traps return, and nothing bounds
// how deep they call each other. It costs nothing where the body cannot make a proxy.
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

// handled returns the arguments that make a proxy, with a handler of ours.
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

// handler stands between a proxy and the object that the script gave it as its handler. No
// script ever sees it: traps are called as methods of that object.
type proxyHandler struct {
	r      *Realm
	target *goja.Object
}

// Get returns a trap, which is looked up each time, since it may come later.
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
		return trap // which the engine throws for
	}
	return h.r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value {
		defer h.r.enterTrap()()
		return call(h.target, c.Arguments...)
	})
}

// setPrototype is the trap of handlers that have none: the target is judged at the moment at
// which its prototype is set, and not before the handler was asked.
func (h *proxyHandler) setPrototype(c goja.FunctionCall) goja.Value {
	defer h.r.enterTrap()()
	target, _ := c.Argument(0).(*goja.Object)
	return h.r.Runtime.ToValue(h.r.setPrototype(target, h.r.prototypeOf(c.Argument(1))))
}

// Set, Has, Delete and Keys are those of an object without members: of handlers the engine
// only gets traps.
func (*proxyHandler) Set(string, goja.Value) bool { return false }
func (*proxyHandler) Has(string) bool             { return false }
func (*proxyHandler) Delete(string) bool          { return true }
func (*proxyHandler) Keys() []string              { return nil }

// deeper goes one step deeper into proxies, and returns what goes back.
func (r *Realm) enterTrap() (back func()) {
	if r.traps == maxTraps {
		panic(r.Construct("RangeError", r.Runtime.ToValue("proxies ask each other without end")))
	}
	r.traps++
	return r.leaveTrap
}

func (r *Realm) leaveTrap() { r.traps-- }
