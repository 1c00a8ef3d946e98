package builtins

import (
	"strconv"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// native is a function for scripts that is written in Go.
type native = func(goja.FunctionCall) goja.Value

// Function returns a native function with a name.
func (r *Realm) Function(name string, f native) *goja.Object {
	o := r.Runtime.ToValue(f).(*goja.Object)
	_ = o.DefineDataProperty("name", r.Runtime.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// Method adds a function to an object, unless the script cannot reach it: an unused function would
// cost as much as a used one.
func (r *Realm) Method(o *goja.Object, name string, f native) {
	if r.Program.Mentions(name) {
		r.defineMethod(o, name, f)
	}
}

// defineMethod adds a function that the language calls implicitly, such as toString.
func (r *Realm) defineMethod(o *goja.Object, name string, f native) {
	_ = o.DefineDataProperty(name, r.Function(name, f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// Accessor adds an accessor to an object. If set is nil, it is read-only.
func (r *Realm) Accessor(o *goja.Object, name string, get native, set native) {
	if !r.Program.Mentions(name) {
		return
	}
	var setter goja.Value
	if set != nil {
		setter = r.Runtime.ToValue(set)
	}
	_ = o.DefineAccessorProperty(name, r.Runtime.ToValue(get), setter, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// Class returns a constructor and its prototype. construct receives the new object. The engine
// creates one even if new is missing.
func (r *Realm) Class(name string, construct func(self *goja.Object, args goja.ConstructorCall)) (constructor, prototype *goja.Object) {
	constructor = r.Runtime.ToValue(func(c goja.ConstructorCall) *goja.Object {
		construct(c.This, c)
		return nil
	}).(*goja.Object)
	_ = constructor.DefineDataProperty("name", r.Runtime.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return constructor, constructor.Get("prototype").(*goja.Object)
}

// Bind stores the Go state of an object.
func (r *Realm) Bind(o *goja.Object, state any) {
	if r.States == nil {
		r.States = map[*goja.Object]any{}
	}
	r.States[o] = state
}

// Self returns the Go state of the object that a method was called on.
func Self[T any](r *Realm, this goja.Value) T {
	o, _ := this.(*goja.Object)
	state, ok := r.States[o].(T)
	if !ok {
		panic(r.TypeError("the method was called on a wrong object"))
	}
	return state
}

// TypeError returns an error to panic with for an invalid argument.
func (r *Realm) TypeError(message string) *goja.Object { return r.Runtime.NewTypeError("%s", message) }

// SyntaxError returns an error to panic with for invalid text.
func (r *Realm) SyntaxError(message string) *goja.Object {
	return r.Construct("SyntaxError", r.Runtime.ToValue(message))
}

// RangeError returns an error to panic with for a value out of range.
func (r *Realm) RangeError(message string) *goja.Object {
	return r.Construct("RangeError", r.Runtime.ToValue(message))
}

// Throwable returns an error to panic with for a Go error.
func (r *Realm) Throwable(err error) *goja.Object { return r.TypeError(err.Error()) }

// Data returns the value of JSON text, frozen on request.
func (r *Realm) Data(json []byte, frozen bool) (goja.Value, error) {
	if len(json) == 0 {
		return r.Runtime.NewObject(), nil
	}
	d := jsvalue.Decoder{Runtime: r.Runtime, Src: string(json)}
	if frozen {
		d.Freeze = r.Freeze()
	}
	return d.Document()
}

// Freeze returns the Object.freeze of the engine.
func (r *Realm) Freeze() goja.Callable {
	call, _ := goja.AssertFunction(r.Builtin("Object").Get("freeze"))
	return call
}

// Builtin returns a global object of the engine. It panics if the script has replaced it.
func (r *Realm) Builtin(name string) *goja.Object {
	o, ok := r.Runtime.GlobalObject().Get(name).(*goja.Object)
	if !ok {
		panic(r.TypeError(name + " was replaced"))
	}
	return o
}

// Index returns the name of an element of an array.
func Index(i int64) string { return strconv.FormatInt(i, 10) }

// IsNothing reports whether a value is undefined or null.
func IsNothing(v goja.Value) bool { return v == nil || goja.IsUndefined(v) || goja.IsNull(v) }

// queueMicrotask calls a function after the current one.
func (r *Realm) queueMicrotask(c goja.FunctionCall) goja.Value {
	function, ok := jsvalue.Callable(c.Argument(0))
	if !ok {
		panic(r.TypeError("queueMicrotask needs a function"))
	}
	promise, resolve, _ := r.Runtime.NewPromise()
	then, _ := jsvalue.Callable(r.Runtime.ToValue(promise).(*goja.Object).Get("then"))
	then(r.Runtime.ToValue(promise), r.Function("", func(goja.FunctionCall) goja.Value { return function(goja.Undefined()) }))
	if err := resolve(goja.Undefined()); err != nil {
		panic(err)
	}
	return goja.Undefined()
}
