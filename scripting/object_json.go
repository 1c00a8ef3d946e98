package scripting

import (
	"errors"
	"strings"

	"github.com/dop251/goja"
)

// The bounds of JSON.stringify within a script.
const (
	maxStringifyDepth = 500
	maxStringifyBytes = 64 << 20
)

// makeJSON makes JSON. Its functions do what the engine's do, but end with an
// error where those would overflow the stack of the process.
func (r *run) makeJSON() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "parse", r.parse)
	r.method(o, "stringify", r.stringify)
	return o
}

// parse is JSON.parse(text, reviver).
func (r *run) parse(c goja.FunctionCall) goja.Value {
	v, err := r.decode(c.Argument(0).String())
	if err != nil {
		panic(r.syntaxError("JSON.parse: " + err.Error()))
	}
	reviver, ok := callable(c.Argument(1))
	if !ok {
		return v
	}
	root := r.rt.NewObject()
	_ = root.Set("", v)
	return r.revive(root, "", 0, reviver)
}

// revive is InternalizeJSONProperty of ECMA-262. A reviver may nest the value
// deeper than the decoder allows; the depth is bounded here too.
func (r *run) revive(holder *goja.Object, key string, depth int, reviver func(goja.Value, ...goja.Value) goja.Value) goja.Value {
	if depth > 2*maxDecodeDepth {
		panic(r.construct("RangeError", r.rt.ToValue("JSON.parse: the reviver nests the value too deep")))
	}
	value := holder.Get(key)
	if o, ok := value.(*goja.Object); ok {
		for _, name := range o.Keys() {
			r.proceed()
			v := r.revive(o, name, depth+1, reviver)
			if goja.IsUndefined(v) {
				_ = o.Delete(name)
			} else {
				_ = define(o, name, v)
			}
		}
	}
	if value == nil {
		value = goja.Undefined()
	}
	return reviver(holder, r.rt.ToValue(key), value)
}

// stringify is JSON.stringify(value, replacer, space).
func (r *run) stringify(c goja.FunctionCall) goja.Value {
	e := newEncoder(maxStringifyBytes, maxStringifyDepth, r.stopped)
	e.awaited = r.program.kind == Code
	e.layout = r.layout(c.Argument(1), c.Argument(2))
	wrote, err := e.encode(c.Argument(0))
	switch {
	case errors.Is(err, errStopped):
		return goja.Undefined() // the interrupt follows
	case err != nil:
		panic(r.throwable(err))
	case !wrote:
		return goja.Undefined()
	}
	return r.rt.ToValue(string(e.out))
}

func (r *run) layout(replacer, space goja.Value) layout {
	l := layout{gap: gap(space)}
	if f, ok := callable(replacer); ok {
		l.replacer = f
		return l
	}
	list, ok := replacer.(*goja.Object)
	if !ok || kindOf(list) != kindArray {
		return l
	}
	l.only = []string{}
	seen := map[string]bool{}
	for i := range min(lengthOf(list), maxDecodeValues) {
		r.proceed()
		name := textOf(list.Get(index(i)))
		if !seen[name] {
			seen[name] = true
			l.only = append(l.only, name)
		}
	}
	return l
}

// gap returns the indent that the third argument of JSON.stringify means.
func gap(space goja.Value) string {
	if n, ok := number(space); ok {
		return strings.Repeat(" ", int(max(0, min(10, n))))
	}
	if s, ok := space.(goja.String); ok {
		return s.Substring(0, min(10, s.Length())).String()
	}
	return ""
}

func (r *run) syntaxError(message string) *goja.Object {
	return r.construct("SyntaxError", r.rt.ToValue(message))
}
