package scripting

import (
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// options checks the options of a function: an object with no members but the
// names, or nothing.
func (r *run) options(what string, v goja.Value, names ...string) goja.Value {
	if isNothing(v) {
		return goja.Undefined()
	}
	o, ok := v.(*goja.Object)
	if !ok {
		panic(r.typeError(what + ": the options must be an object"))
	}
	for _, name := range o.Keys() {
		r.proceed()
		if !slices.Contains(names, name) {
			panic(r.typeError(what + ": there is no such option; there is " + strings.Join(names, ", ")))
		}
	}
	return o
}

// textArgument returns an argument that must be text, of at most 16 MiB.
func (r *run) textArgument(what string, v goja.Value) string {
	if _, ok := v.(goja.String); !ok {
		panic(r.typeError(what + ": the text must be a string"))
	}
	return r.bounded(v).String()
}

// rangeError returns a RangeError to panic with.
func (r *run) rangeError(message string) *goja.Object {
	return r.construct("RangeError", r.rt.ToValue(message))
}
