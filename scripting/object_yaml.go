package scripting

import (
	"errors"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/yaml"
)

// makeYAML makes yaml: parse(text, options) and print(value).
func (r *run) makeYAML() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "parse", r.parseYAML)
	r.method(o, "print", r.printYAML)
	return o
}

// parseYAML is yaml.parse(text, { all }).
func (r *run) parseYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.parse"
	text := r.textArgument(what, c.Argument(0))
	all := option(r.options(what, c.Argument(1), "all"), "all").ToBoolean()
	documents, err := yaml.Parse(text, r.going)
	r.refused(what, err)
	switch {
	case all:
		return r.plain(documents)
	case len(documents) > 1:
		panic(r.syntaxError(what + ": the text has more than one document; { all: true } gives a list of them"))
	case len(documents) == 0:
		return goja.Null()
	}
	return r.plain(documents[0])
}

// printYAML is yaml.print(value), of what JSON.stringify would write.
func (r *run) printYAML(c goja.FunctionCall) goja.Value {
	const what = "yaml.print"
	return r.printed(c.Argument(0), func(text []byte) string {
		if text == nil {
			panic(r.typeError(what + ": there is nothing to print"))
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
func (r *run) refused(what string, err error) {
	var mistake *yaml.Error
	switch {
	case err == nil:
	case errors.As(err, &mistake):
		panic(r.syntaxError(what + ": " + err.Error()))
	default:
		panic(r.throwable(err))
	}
}
