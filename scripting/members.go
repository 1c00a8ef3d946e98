package scripting

import (
	"strconv"

	"github.com/dop251/goja"
)

// native is a function of a script that is written in Go.
type native = func(goja.FunctionCall) goja.Value

// function returns a native function.
func (r *run) function(name string, f native) *goja.Object {
	o := r.rt.ToValue(f).(*goja.Object)
	_ = o.DefineDataProperty("name", r.rt.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// method adds a function to an object, unless the body cannot reach it: a
// function that nobody calls would cost as much as one that somebody does.
func (r *run) method(o *goja.Object, name string, f native) {
	if r.program.mentions(name) {
		r.implicit(o, name, f)
	}
}

// grants returns an object with one member for each grant of a kind, unless the
// body cannot reach it.
func (r *run) grants(kind string, make func(r *run, name string) *goja.Object) *goja.Object {
	o := r.rt.NewObject()
	for _, granted := range r.program.objects {
		if granted.Kind == kind && r.program.mentions(granted.Name) {
			_ = o.DefineDataProperty(granted.Name, make(r, granted.Name), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		}
	}
	return o
}

// implicit adds a function that the language calls without naming it, such as toString.
func (r *run) implicit(o *goja.Object, name string, f native) {
	_ = o.DefineDataProperty(name, r.function(name, f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// accessor adds an accessor to an object. A nil set makes it read-only.
func (r *run) accessor(o *goja.Object, name string, get native, set native) {
	if !r.program.mentions(name) {
		return
	}
	var setter goja.Value
	if set != nil {
		setter = r.rt.ToValue(set)
	}
	_ = o.DefineAccessorProperty(name, r.rt.ToValue(get), setter, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// class returns a constructor and its prototype. construct gets the new
// object; the engine makes one also where new was forgotten.
func (r *run) class(name string, construct func(self *goja.Object, args goja.ConstructorCall)) (constructor, prototype *goja.Object) {
	constructor = r.rt.ToValue(func(c goja.ConstructorCall) *goja.Object {
		construct(c.This, c)
		return nil
	}).(*goja.Object)
	_ = constructor.DefineDataProperty("name", r.rt.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return constructor, constructor.Get("prototype").(*goja.Object)
}

// bind keeps the Go half of an object.
func (r *run) bind(o *goja.Object, state any) {
	if r.states == nil {
		r.states = map[*goja.Object]any{}
	}
	r.states[o] = state
}

// self returns the Go half of the object that a method was called on.
func self[T any](r *run, this goja.Value) T {
	o, _ := this.(*goja.Object)
	state, ok := r.states[o].(T)
	if !ok {
		panic(r.typeError("the method was called on a wrong object"))
	}
	return state
}

// typeError returns a TypeError to panic with.
func (r *run) typeError(message string) *goja.Object { return r.rt.NewTypeError("%s", message) }

// throwable returns an error to panic with for an error of Go.
func (r *run) throwable(err error) *goja.Object { return r.typeError(err.Error()) }

// data returns the value that JSON stands for. Frozen data never changes.
func (r *run) data(json []byte, frozen bool) (goja.Value, error) {
	if len(json) == 0 {
		return r.rt.NewObject(), nil
	}
	d := decoder{rt: r.rt, src: string(json)}
	if frozen {
		d.freeze = r.freeze()
	}
	return d.document()
}

// freeze returns Object.freeze.
func (r *run) freeze() goja.Callable {
	call, _ := goja.AssertFunction(r.builtin("Object").Get("freeze"))
	return call
}

// builtin returns one of the engine's own objects, unless the script has put
// something else in its place.
func (r *run) builtin(name string) *goja.Object {
	o, ok := r.rt.GlobalObject().Get(name).(*goja.Object)
	if !ok {
		panic(r.typeError(name + " was replaced"))
	}
	return o
}

func index(i int64) string { return strconv.FormatInt(i, 10) }

func isNothing(v goja.Value) bool { return v == nil || goja.IsUndefined(v) || goja.IsNull(v) }
