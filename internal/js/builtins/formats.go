package builtins

import (
	"errors"
	"maps"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/toml"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// parseYAML is yaml.parse(text, { all }).
func (r *Realm) parseYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.parse"
	text := r.textArgument(what, c.Argument(0))
	all := Option(r.options(what, c.Argument(1), "all"), "all").ToBoolean()
	documents, err := yaml.Parse(text, r.stopErr)
	r.throwFormatError(what, err)
	switch {
	case all:
		return r.toScriptValue(documents)
	case len(documents) > 1:
		panic(r.SyntaxError(what + ": the text has more than one document; { all: true } gives a list of them"))
	case len(documents) == 0:
		return goja.Null()
	}
	return r.toScriptValue(documents[0])
}

// printYAML is yaml.print(value). It prints the same members as JSON.stringify.
func (r *Realm) printYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.print"
	return r.printedText(c.Argument(0), func(text []byte) string {
		if text == nil {
			panic(r.TypeError(what + ": there is nothing to print"))
		}
		printed, err := yaml.Print(text, r.stopErr)
		if errors.Is(err, yaml.ErrLong) {
			panic(r.tooLong())
		}
		r.throwFormatError(what, err)
		return printed
	})
}

// throwFormatError throws the error for a text that cannot be parsed or printed.
func (r *Realm) throwFormatError(what string, err error) {
	var mistake *yaml.Error
	switch {
	case err == nil:
	case errors.As(err, &mistake):
		panic(r.SyntaxError(what + ": " + err.Error()))
	default:
		panic(r.Throwable(err))
	}
}

// makeTOML returns toml: parse(text) and print(value).
func (r *Realm) makeTOML() *goja.Object {
	parse := func(c goja.FunctionCall) goja.Value {
		const what = "toml.parse"
		table, err := toml.Parse(r.textArgument(what, c.Argument(0)))
		if err != nil {
			panic(r.SyntaxError(what + ": " + err.Error()))
		}
		return r.toScriptValue(table)
	}
	return r.format(parse, "print", func(c goja.FunctionCall) goja.Value {
		const what = "toml.print"
		return r.printedText(c.Argument(0), func(text []byte) string {
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

// format returns the global of a text format, with parse and a printer.
func (r *Realm) format(parse native, printer string, print native) *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "parse", parse)
	r.Method(o, printer, print)
	return o
}

// stopErr returns an error when the call is over. Parsers and printers call it.
func (r *Realm) stopErr() error {
	if r.Caller.Stopped() {
		return jsvalue.ErrStopped
	}
	return nil
}

// printedText returns the text of a printer for the JSON of a value. The JSON is nil if
// JSON.stringify would omit the value.
func (r *Realm) printedText(value goja.Value, print func(text []byte) string) goja.Value {
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

func (r *Realm) toScriptValue(v any) goja.Value {
	r.Proceed()
	switch v := v.(type) {
	case nil:
		return goja.Null()
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = r.toScriptValue(item)
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
		v := r.toScriptValue(values[i])
		if n, ok := jsvalue.ArrayIndex(name); ok {
			indexed = append(indexed, jsvalue.IndexedMember{Index: n, Name: name, Value: v})
		} else {
			_ = jsvalue.Define(o, name, v)
		}
	}
	_ = jsvalue.DefineIndexed(o, indexed)
	return o
}

// sorted returns the members of a table, sorted by name.
func sorted(table map[string]any) (names []string, values []any) {
	names = slices.Sorted(maps.Keys(table))
	for _, name := range names {
		values = append(values, table[name])
	}
	return names, values
}
