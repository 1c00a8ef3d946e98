package scripting

import "github.com/dop251/goja"

// protoName is the accessor of prototypes.
const protoName = "__proto__"

// maxPrototypes bounds how many prototypes and proxies are behind each other where one is set.
const maxPrototypes = 10_000

// guardPrototypes has nobody put an object behind itself by way of a proxy, or of an object
// of the host: the engine looks through the prototypes of those without an end, which no
// interrupt stops, and which the stack of the process may not survive. Of all other objects
// it finds out itself. It costs nothing where the body has no such object, or sets no
// prototype.
func (r *run) guardPrototypes() {
	p := r.program
	if !p.proxies || !p.mentions("setPrototypeOf") && !p.mentions(protoName) {
		return
	}
	const hidden, kept = goja.FLAG_FALSE, goja.FLAG_TRUE
	object := r.builtin("Object")
	_ = object.DefineDataProperty("setPrototypeOf", r.function("setPrototypeOf", func(c goja.FunctionCall) goja.Value {
		proto := r.prototypeOf(c.Argument(1))
		o, ok := c.Argument(0).(*goja.Object)
		if !ok {
			if isNothing(c.Argument(0)) {
				panic(r.typeError("nothing has a prototype"))
			}
			return c.Argument(0)
		}
		r.setPrototype(o, proto)
		return o
	}), kept, kept, hidden)
	_ = r.builtin("Reflect").DefineDataProperty("setPrototypeOf", r.function("setPrototypeOf", func(c goja.FunctionCall) goja.Value {
		o, ok := c.Argument(0).(*goja.Object)
		if !ok {
			panic(r.typeError("Reflect.setPrototypeOf takes an object"))
		}
		proto := r.prototypeOf(c.Argument(1))
		return r.rt.ToValue(r.rt.Try(func() { r.setPrototype(o, proto) }) == nil)
	}), kept, kept, hidden)
	get := r.function("get "+protoName, func(c goja.FunctionCall) goja.Value {
		if proto := c.This.ToObject(r.rt).Prototype(); proto != nil {
			return proto
		}
		return goja.Null()
	})
	set := r.function("set "+protoName, func(c goja.FunctionCall) goja.Value {
		o, ok := c.This.(*goja.Object)
		_, some := c.Argument(0).(*goja.Object)
		if ok && (some || goja.IsNull(c.Argument(0))) {
			r.setPrototype(o, r.prototypeOf(c.Argument(0)))
		}
		return goja.Undefined()
	})
	_ = object.Get("prototype").(*goja.Object).DefineAccessorProperty(protoName, get, set, kept, hidden)
}

// prototypeOf returns what a value is as a prototype, nil for null.
func (r *run) prototypeOf(v goja.Value) *goja.Object {
	o, ok := v.(*goja.Object)
	if !ok && !goja.IsNull(v) {
		panic(r.typeError("a prototype is an object or null"))
	}
	return o
}

// setPrototype sets the prototype of an object, unless that is behind it.
func (r *run) setPrototype(o, proto *goja.Object) {
	w := &walk{r: r}
	self := w.behind(o)
	for p := proto; p != nil; p = p.Prototype() {
		if p = w.behind(p); p.SameAs(self) {
			panic(r.typeError("an object cannot be behind itself"))
		}
		w.step()
	}
	if err := o.SetPrototype(proto); err != nil {
		panic(r.throwable(err))
	}
}

// walk goes from object to object, which takes a bounded number of steps.
type walk struct {
	r     *run
	steps int
}

func (w *walk) step() {
	if w.steps++; w.steps > maxPrototypes {
		panic(w.r.typeError("too many objects are behind this one"))
	}
}

// behind returns the object behind proxies, without running user code; of one that is
// revoked it is the proxy.
func (w *walk) behind(o *goja.Object) *goja.Object {
	for o.ExportType() == proxyType {
		target := o.Export().(goja.Proxy).Target()
		if target == nil {
			return o
		}
		o = target
		w.step()
	}
	return o
}
