package scripting

import (
	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// scriptError says what an error object is to the caller.
type scriptError struct {
	kind FailureKind
	code int
	// member is what the constructor's options hold.
	member string
	// details says that the member is the details of the failure, and within,
	// unless empty, as which member of them.
	details  bool
	nestedIn string
	// tool is whose call failed by the error, and refusal the code of that.
	tool, refusal string
}

func errorOf(name string) *scriptError {
	switch name {
	case "ToolError":
		return &scriptError{kind: ToolError, member: "details", details: true}
	case "RpcError":
		return &scriptError{kind: RPCError, member: "data", details: true}
	case "CapabilityError":
		return &scriptError{kind: CapabilityError, member: "required", details: true, nestedIn: requiredCapabilities}
	case "AskDenied":
		return &scriptError{kind: AskDenied, member: "reason", details: true, nestedIn: "reason"}
	default:
		return &scriptError{kind: Thrown, member: "code"}
	}
}

// requiredCapabilities is what MCP calls the capabilities that a client lacks.
const requiredCapabilities = "requiredCapabilities"

// makeError makes the class of errors of that name. Their objects are made by
// the engine's own Error, so that they have a stack.
func (r *execution) makeError(name string) *goja.Object {
	base := r.Builtin("Error")
	class := r.Runtime.ToValue(func(c goja.ConstructorCall) *goja.Object {
		return r.newError(name, base, c)
	}).(*goja.Object)
	prototype := class.Get("prototype").(*goja.Object)
	text := r.Runtime.ToValue(name)
	_ = class.DefineDataProperty("name", text, goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataProperty("name", text, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.SetPrototype(base.Get("prototype").(*goja.Object))
	_ = class.SetPrototype(base)
	return class
}

// newError makes an error: RpcError(code, message, data), or of the others
// NAME(message, options), where options hold the one member that it has.
func (r *execution) newError(name string, base *goja.Object, c goja.ConstructorCall) *goja.Object {
	made := errorOf(name)
	message, value := c.Argument(0), builtins.Option(c.Argument(1), made.member)
	if name == "RpcError" {
		code, ok := jsvalue.Finite(c.Argument(0))
		if !ok || code != float64(int32(code)) {
			panic(r.TypeError("RpcError(code, message, data): code must be an integer"))
		}
		made.code, message, value = int(code), c.Argument(1), c.Argument(2)
	}
	o, err := r.Runtime.New(base, message)
	if err != nil {
		panic(err)
	}
	if name == "RpcError" {
		_ = o.Set("code", made.code)
	}
	if !goja.IsUndefined(value) {
		_ = o.Set(made.member, value)
	}
	_ = o.SetPrototype(c.This.Prototype())
	r.Bind(o, made)
	return o
}

// failing makes the error of that name that a host call ended with, caused at
// stack. value is the one member that it has.
func (r *execution) newCallError(name, message string, value any, stack []goja.StackFrame) *goja.Object {
	class, made := r.Needed(name), errorOf(name)
	o := r.Construct("Error", r.Runtime.ToValue(message))
	_ = o.Set(made.member, value)
	_ = o.SetPrototype(class.Get("prototype").(*goja.Object))
	r.Bind(o, made)
	if r.stacks == nil {
		r.stacks = map[*goja.Object][]goja.StackFrame{}
	}
	r.stacks[o] = stack
	return o
}

// hostError makes the error that a script sees of a refusal, caused at stack.
func (r *execution) hostError(refused *HostError, stack []goja.StackFrame) *goja.Object {
	return r.newCallError("HostError", refused.Message, refused.Code, stack)
}
