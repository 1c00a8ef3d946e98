package scripting

import (
	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// scriptError describes the failure that an error object causes.
type scriptError struct {
	kind FailureKind
	code int
	// member is the member that the constructor reads from its options.
	member string
	// details is set if the member becomes the details of the failure. nestedIn is the name of the
	// member of the details; if empty, the member is the details.
	details  bool
	nestedIn string
	// tool is the tool of the failed call, and refusal its error code.
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

// requiredCapabilities is the MCP name for the capabilities that a client lacks.
const requiredCapabilities = "requiredCapabilities"

// makeError returns a class of errors. Its objects are created by the Error of the engine, so that
// they have a stack.
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

// newError creates an error: RpcError(code, message, data), or NAME(message, options) with the one
// member in options.
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

// newCallError returns the error object for a failed host call that was made at stack. value is its
// member.
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

// hostError returns the error object for an error of the host.
func (r *execution) hostError(refused *HostError, stack []goja.StackFrame) *goja.Object {
	return r.newCallError("HostError", refused.Message, refused.Code, stack)
}
