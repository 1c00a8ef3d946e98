package builtins

import (
	"errors"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/scripting/source"
)

// Limits of JSON.stringify in a script.
const (
	maxStringifyDepth = 500
	maxStringifyBytes = 64 << 20
)

// parse is JSON.parse(text, reviver).
func (r *Realm) parse(c goja.FunctionCall) goja.Value {
	v, err := r.Decode(c.Argument(0).String())
	if err != nil {
		panic(r.SyntaxError("JSON.parse: " + err.Error()))
	}
	reviver, ok := jsvalue.Callable(c.Argument(1))
	if !ok {
		return v
	}
	root := r.Runtime.NewObject()
	_ = root.Set("", v)
	return r.revive(root, "", 0, reviver)
}

// revive is InternalizeJSONProperty of ECMA-262. A reviver may nest the value deeper than the
// decoder allows, so the depth is limited here too.
func (r *Realm) revive(holder *goja.Object, key string, depth int, reviver func(goja.Value, ...goja.Value) goja.Value) goja.Value {
	if depth > 2*jsvalue.MaxDecodeDepth {
		panic(r.Construct("RangeError", r.Runtime.ToValue("JSON.parse: the reviver nests the value too deep")))
	}
	value := holder.Get(key)
	if o, ok := value.(*goja.Object); ok {
		for _, name := range o.Keys() {
			r.Proceed()
			v := r.revive(o, name, depth+1, reviver)
			if goja.IsUndefined(v) {
				_ = o.Delete(name)
			} else {
				_ = jsvalue.Define(o, name, v)
			}
		}
	}
	if value == nil {
		value = goja.Undefined()
	}
	return reviver(holder, r.Runtime.ToValue(key), value)
}

// stringify is JSON.stringify(value, replacer, space).
func (r *Realm) stringify(c goja.FunctionCall) goja.Value {
	e := jsvalue.NewEncoder(maxStringifyBytes, maxStringifyDepth, r.Caller.Stopped)
	e.Awaited = r.Program.Kind == source.Code
	e.Layout = r.layout(c.Argument(1), c.Argument(2))
	wrote, err := e.Encode(c.Argument(0))
	switch {
	case errors.Is(err, jsvalue.ErrStopped):
		return goja.Undefined() // the interrupt follows
	case err != nil:
		panic(r.Throwable(err))
	case !wrote:
		return goja.Undefined()
	}
	return r.Runtime.ToValue(string(e.Out))
}

func (r *Realm) layout(replacer, space goja.Value) jsvalue.Layout {
	l := jsvalue.Layout{Gap: gap(space)}
	if f, ok := jsvalue.Callable(replacer); ok {
		l.Replacer = f
		return l
	}
	list, ok := replacer.(*goja.Object)
	if !ok || jsvalue.KindOf(list) != jsvalue.Array {
		return l
	}
	l.Only = []string{}
	seen := map[string]bool{}
	for i := range min(jsvalue.LengthOf(list), jsvalue.MaxDecodeValues) {
		r.Proceed()
		name := TextOf(list.Get(Index(i)))
		if !seen[name] {
			seen[name] = true
			l.Only = append(l.Only, name)
		}
	}
	return l
}

// gap returns the indent for the third argument of JSON.stringify.
func gap(space goja.Value) string {
	if n, ok := jsvalue.Finite(space); ok {
		return strings.Repeat(" ", int(max(0, min(10, n))))
	}
	if s, ok := space.(goja.String); ok {
		return s.Substring(0, min(10, s.Length())).String()
	}
	return ""
}
