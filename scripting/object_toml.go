package scripting

import (
	"errors"

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
		return r.printed(c.Argument(0), func(text []byte) string {
			printed, err := toml.Print(text)
			switch {
			case errors.Is(err, toml.ErrLong):
				panic(r.tooLong())
			case err != nil:
				panic(r.typeError(what + ": " + err.Error()))
			}
			return printed
		})
	})
	return o
}
