package scripting

import (
	"slices"

	"github.com/dop251/goja"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

// option returns a member of an options object, undefined when there is none.
func option(options goja.Value, name string) goja.Value {
	o, ok := options.(*goja.Object)
	if !ok {
		return goja.Undefined()
	}
	if v := o.Get(name); v != nil {
		return v
	}
	return goja.Undefined()
}

// makeRegExp makes RegExp for a body that names it: the engine's class behind
// a check of the pattern, because compiling a hostile one can overflow the
// stack of the process. Matching is as slow as the pattern makes it.
func (r *realm) makeRegExp() *goja.Object {
	original := r.builtin("RegExp")
	prototype := original.Get("prototype").(*goja.Object)
	class := r.rt.ToValue(func(c goja.ConstructorCall) *goja.Object {
		args := slices.Clone(c.Arguments)
		if len(args) > 0 {
			args[0] = r.checkedPattern(args[0])
		}
		o, err := r.rt.New(original, args...)
		if err != nil {
			panic(err)
		}
		_ = o.SetPrototype(c.This.Prototype())
		return o
	}).(*goja.Object)
	hidden := func(o *goja.Object, name string, v goja.Value) {
		_ = o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	hidden(class, "name", r.rt.ToValue("RegExp"))
	_ = class.Set("prototype", prototype)
	hidden(prototype, "constructor", class)
	_ = class.DefineAccessorPropertySymbol(goja.SymSpecies, r.function("get species", func(c goja.FunctionCall) goja.Value { return c.This }), nil, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return class
}

// checkedPattern returns what a regular expression may be made of, as text
// unless it is a RegExp already.
func (r *realm) checkedPattern(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && o.ClassName() == "RegExp" || goja.IsUndefined(v) {
		return v
	}
	text := v.ToString()
	if _, why := syntax.PatternSize(text.String()); why != "" {
		panic(r.syntaxError("the regular expression is too large: " + why))
	}
	return text
}

// boundPatterns checks the text that match, matchAll and search compile to a
// regular expression.
func (r *realm) boundPatterns() error {
	prototype := r.builtin("String").Get("prototype").(*goja.Object)
	for _, name := range []string{"match", "matchAll", "search"} {
		if !r.program.Mentions(name) {
			continue
		}
		original, _ := jsvalue.Callable(prototype.Get(name))
		err := prototype.DefineDataProperty(name, r.function(name, func(c goja.FunctionCall) goja.Value {
			args := slices.Clone(c.Arguments)
			if _, object := c.Argument(0).(*goja.Object); len(args) > 0 && !object {
				args[0] = r.checkedPattern(args[0])
			}
			return original(c.This, args...)
		}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		if err != nil {
			return err
		}
	}
	return nil
}
