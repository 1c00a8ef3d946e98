package scripting

import (
	"slices"

	"github.com/dop251/goja"
)

// guardPromises has promises of code say that they are none of what their values are, where
// one becomes text, is gone through as a list, or is asked for a member that lists have: all
// of that is a forgotten await, and would go on with nothing. Members that code gives a
// promise itself are there.
func (r *run) guardPromises() {
	if r.program.kind != Code {
		return
	}
	prototype, _ := r.builtin("Promise").Get("prototype").(*goja.Object)
	if prototype == nil {
		return
	}
	refuse := func(wrong string) *goja.Object {
		return r.function("", func(goja.FunctionCall) goja.Value {
			panic(r.typeError(wrong + "; write await in front of what returns it"))
		})
	}
	_ = prototype.DefineDataPropertySymbol(goja.SymToPrimitive, refuse(promiseAsText), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataPropertySymbol(goja.SymIterator, refuse(promiseAsList), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	for _, name := range slices.Concat(ofLists, []string{"length", "slice", "toString"}) {
		if r.program.mentions(name) {
			r.guardMember(prototype, name, refuse("a promise has no member \""+name+"\""))
		}
	}
	for i := range int64(firstElements) {
		r.guardMember(prototype, index(i), refuse(promiseAsList))
	}
}

// firstElements is how many elements of a promise are missed by name: who goes through a
// list begins with one of them.
const firstElements = 4

// guardMember has reading a member of a promise call a function, unless code has set it.
func (r *run) guardMember(prototype *goja.Object, name string, refuse *goja.Object) {
	set := r.function("", func(c goja.FunctionCall) goja.Value {
		if o, ok := c.This.(*goja.Object); ok {
			_ = o.DefineDataProperty(name, c.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
		return goja.Undefined()
	})
	_ = prototype.DefineAccessorProperty(name, refuse, set, goja.FLAG_TRUE, goja.FLAG_FALSE)
}
