package builtins

import (
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

// makeRegExp returns RegExp for a script that names it: the class of the engine with a check of the
// pattern, because a hostile pattern can overflow the stack of the process. The time for matching
// depends on the pattern.
func (r *Realm) makeRegExp() *goja.Object {
	original := r.Builtin("RegExp")
	prototype := original.Get("prototype").(*goja.Object)
	class := r.Runtime.ToValue(func(c goja.ConstructorCall) *goja.Object {
		args := slices.Clone(c.Arguments)
		if len(args) > 0 {
			args[0] = r.checkedPattern(args[0])
		}
		o, err := r.Runtime.New(original, args...)
		if err != nil {
			panic(err)
		}
		_ = o.SetPrototype(c.This.Prototype())
		return o
	}).(*goja.Object)
	hidden := func(o *goja.Object, name string, v goja.Value) {
		_ = o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	hidden(class, "name", r.Runtime.ToValue("RegExp"))
	_ = class.Set("prototype", prototype)
	hidden(prototype, "constructor", class)
	_ = class.DefineAccessorPropertySymbol(goja.SymSpecies, r.Function("get species", func(c goja.FunctionCall) goja.Value { return c.This }), nil, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return class
}

// checkedPattern returns the argument for RegExp: as text, unless it is a RegExp.
func (r *Realm) checkedPattern(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && o.ClassName() == "RegExp" || goja.IsUndefined(v) {
		return v
	}
	text := v.ToString()
	if _, why := syntax.PatternSize(text.String()); why != "" {
		panic(r.SyntaxError("the regular expression is too large: " + why))
	}
	return text
}

// BoundPatterns guards match, matchAll and search, which compile text to a regular expression.
func (r *Realm) BoundPatterns() error {
	prototype := r.Builtin("String").Get("prototype").(*goja.Object)
	for _, name := range []string{"match", "matchAll", "search"} {
		if !r.Program.Mentions(name) {
			continue
		}
		original, _ := jsvalue.Callable(prototype.Get(name))
		err := prototype.DefineDataProperty(name, r.Function(name, func(c goja.FunctionCall) goja.Value {
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
