package scripting

import (
	"errors"
	"maps"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/toml"
)

// makeTOML makes toml: parse(text) and print(value).
func (r *run) makeTOML() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "parse", func(c goja.FunctionCall) goja.Value {
		const what = "toml.parse"
		table, err := toml.Parse(r.textArgument(what, c.Argument(0)))
		if err != nil {
			panic(r.syntaxError(what + ": " + err.Error()))
		}
		return r.plain(table)
	})
	r.method(o, "print", func(c goja.FunctionCall) goja.Value {
		const what = "toml.print"
		text, err := r.json(c.Argument(0))
		if err != nil {
			panic(r.throwable(err))
		}
		printed, err := toml.Print(text)
		switch {
		case errors.Is(err, toml.ErrLong):
			panic(r.tooLong())
		case err != nil:
			panic(r.typeError(what + ": " + err.Error()))
		}
		return r.rt.ToValue(printed)
	})
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
