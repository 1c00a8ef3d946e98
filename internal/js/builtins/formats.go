package builtins

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/toml"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/scripting/source"
)

// parseYAML is yaml.parse(text, { all }).
func (r *Realm) parseYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.parse"
	text := r.textArgument(what, c.Argument(0))
	all := Option(r.options(what, c.Argument(1), "all"), "all").ToBoolean()
	documents, err := yaml.Parse(text, r.going)
	r.refused(what, err)
	switch {
	case all:
		return r.plain(documents)
	case len(documents) > 1:
		panic(r.SyntaxError(what + ": the text has more than one document; { all: true } gives a list of them"))
	case len(documents) == 0:
		return goja.Null()
	}
	return r.plain(documents[0])
}

// printYAML is yaml.print(value), of what JSON.stringify would write.
func (r *Realm) printYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.print"
	return r.printed(c.Argument(0), func(text []byte) string {
		if text == nil {
			panic(r.TypeError(what + ": there is nothing to print"))
		}
		printed, err := yaml.Print(text, r.going)
		if errors.Is(err, yaml.ErrLong) {
			panic(r.tooLong())
		}
		r.refused(what, err)
		return printed
	})
}

// refused throws why a text cannot be read or written.
func (r *Realm) refused(what string, err error) {
	var mistake *yaml.Error
	switch {
	case err == nil:
	case errors.As(err, &mistake):
		panic(r.SyntaxError(what + ": " + err.Error()))
	default:
		panic(r.Throwable(err))
	}
}

// makeTOML makes toml: parse(text) and print(value).
func (r *Realm) makeTOML() *goja.Object {
	parse := func(c goja.FunctionCall) goja.Value {
		const what = "toml.parse"
		table, err := toml.Parse(r.textArgument(what, c.Argument(0)))
		if err != nil {
			panic(r.SyntaxError(what + ": " + err.Error()))
		}
		return r.plain(table)
	}
	return r.format(parse, "print", func(c goja.FunctionCall) goja.Value {
		const what = "toml.print"
		return r.printed(c.Argument(0), func(text []byte) string {
			printed, err := toml.Print(text)
			switch {
			case errors.Is(err, toml.ErrLong):
				panic(r.tooLong())
			case err != nil:
				panic(r.TypeError(what + ": " + err.Error()))
			}
			return printed
		})
	})
}

// format returns the global of a text format: parse, and what writes a value.
func (r *Realm) format(parse native, printer string, print native) *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "parse", parse)
	r.Method(o, printer, print)
	return o
}

// going ends the work of other packages on what a script made when the call is over.
func (r *Realm) going() error {
	if r.Caller.Stopped() {
		return jsvalue.ErrStopped
	}
	return nil
}

// printed returns the text that a printer makes of what JSON.stringify would write
// of a value, which is nil for what it leaves out.
func (r *Realm) printed(value goja.Value, print func(text []byte) string) goja.Value {
	text, err := r.JSON(value)
	if err != nil {
		panic(r.Throwable(err))
	}
	out := print(text)
	if len(out) > maxText {
		panic(r.tooLong())
	}
	return r.Runtime.ToValue(out)
}

func (r *Realm) plain(v any) goja.Value {
	r.Proceed()
	switch v := v.(type) {
	case nil:
		return goja.Null()
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = r.plain(item)
		}
		return r.Runtime.NewArray(items...)
	case *yaml.Map:
		return r.object(v.Names, v.Values)
	case map[string]any:
		return r.object(sorted(v))
	}
	return r.Runtime.ToValue(v)
}

// object returns an object. Names that are array indexes are defined first.
func (r *Realm) object(names []string, values []any) goja.Value {
	o := r.Runtime.NewObject()
	var indexed []jsvalue.IndexedMember
	for i, name := range names {
		v := r.plain(values[i])
		if n, ok := jsvalue.ArrayIndex(name); ok {
			indexed = append(indexed, jsvalue.IndexedMember{Index: n, Name: name, Value: v})
		} else {
			_ = jsvalue.Define(o, name, v)
		}
	}
	_ = jsvalue.DefineIndexed(o, indexed)
	return o
}

// sorted returns the members of a table in the order of their names.
func sorted(table map[string]any) (names []string, values []any) {
	names = slices.Sorted(maps.Keys(table))
	for _, name := range names {
		values = append(values, table[name])
	}
	return names, values
}

// The bounds of JSON.stringify within a script.
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

// revive is InternalizeJSONProperty of ECMA-262. A reviver may nest the value
// deeper than the decoder allows; the depth is bounded here too.
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

// gap returns the indent that the third argument of JSON.stringify means.
func gap(space goja.Value) string {
	if n, ok := jsvalue.Finite(space); ok {
		return strings.Repeat(" ", int(max(0, min(10, n))))
	}
	if s, ok := space.(goja.String); ok {
		return s.Substring(0, min(10, s.Length())).String()
	}
	return ""
}

// SyntaxError returns an error to panic with for text that cannot be read.
func (r *Realm) SyntaxError(message string) *goja.Object {
	return r.Construct("SyntaxError", r.Runtime.ToValue(message))
}
