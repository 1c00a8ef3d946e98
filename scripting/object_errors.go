package scripting

import (
	"github.com/dop251/goja"
)

// scriptError says what an error object is to the caller.
type scriptError struct {
	kind   FailureKind
	code   int
	member string // the member that holds the details
}

// makeError makes the class of errors of that name. Their objects are made by
// the engine's own Error, so that they have a stack.
func (r *run) makeError(name string) *goja.Object {
	base := r.builtin("Error")
	class := r.rt.ToValue(func(c goja.ConstructorCall) *goja.Object {
		return r.newError(name, base, c)
	}).(*goja.Object)
	prototype := class.Get("prototype").(*goja.Object)
	text := r.rt.ToValue(name)
	_ = class.DefineDataProperty("name", text, goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataProperty("name", text, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.SetPrototype(base.Get("prototype").(*goja.Object))
	_ = class.SetPrototype(base)
	return class
}

// newError makes an error: ToolError(message, { details }), RpcError(code,
// message, data) or HostError(message, { code }).
func (r *run) newError(name string, base *goja.Object, c goja.ConstructorCall) *goja.Object {
	message, options := c.Argument(0), c.Argument(1)
	made := &scriptError{kind: ToolError}
	type property struct {
		name  string
		value goja.Value
	}
	var members []property
	switch name {
	case "RpcError":
		code, ok := number(c.Argument(0))
		if !ok || code != float64(int32(code)) {
			panic(r.typeError("RpcError(code, message, data): code must be an integer"))
		}
		message = c.Argument(1)
		made.kind, made.code, made.member = RPCError, int(code), "data"
		members = []property{{"code", c.Argument(0)}, {"data", c.Argument(2)}}
	case "ToolError":
		made.member = "details"
		members = []property{{"details", option(options, "details")}}
	default:
		made.kind = Thrown
		members = []property{{"code", option(options, "code")}}
	}
	o, err := r.rt.New(base, message)
	if err != nil {
		panic(err)
	}
	for _, m := range members {
		if !goja.IsUndefined(m.value) {
			_ = o.Set(m.name, m.value)
		}
	}
	_ = o.SetPrototype(c.This.Prototype())
	r.bind(o, made)
	return o
}

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

// hostError makes the error that a script sees of a refusal, caused at stack.
func (r *run) hostError(refused *HostError, stack []goja.StackFrame) *goja.Object {
	class := r.needed("HostError")
	o := r.construct("Error", r.rt.ToValue(refused.Message))
	_ = o.Set("code", refused.Code)
	_ = o.SetPrototype(class.Get("prototype").(*goja.Object))
	r.bind(o, &scriptError{kind: Thrown})
	if r.stacks == nil {
		r.stacks = map[*goja.Object][]goja.StackFrame{}
	}
	r.stacks[o] = stack
	return o
}
