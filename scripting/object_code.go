package scripting

import (
	"encoding/json"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/compiler"
)

// makeCodeGlobal returns a global that only agent code has; nil for others.
func (r *execution) makeCodeGlobal(name string) *goja.Object {
	switch {
	case name == "console":
		o := r.Runtime.NewObject()
		for _, name := range compiler.ConsoleMethods() {
			r.Method(o, name, func(c goja.FunctionCall) goja.Value { return r.print(name, c.Arguments) })
		}
		return o
	case name == "print":
		return r.Function(name, func(c goja.FunctionCall) goja.Value { return r.print("log", c.Arguments) })
	case name == "parallel":
		return r.makeParallel()
	case name == "tools" || r.Program.Names.Members[name] != nil:
		names := r.Program.Names
		return r.bareObject(toolsObject{r, func(member string) (string, bool) { tool := names.Of(name, member); return tool, tool != "" }, func() []string { return names.In(name) }}, name+" cannot be converted to text; write "+name+".NAME({ … })")
	case slices.Contains(r.Program.Names.Bare, name):
		return r.toolFunction(r.Program.Names.Tool(name))
	}
	return nil
}

// toolFunction returns the function that calls a tool. It is the same object for all names of the
// tool.
func (r *execution) toolFunction(tool string) *goja.Object {
	if f := r.toolFunctions[tool]; f != nil {
		return f
	}
	f := r.Function(tool, func(c goja.FunctionCall) goja.Value {
		if r.Program.Kind != Code {
			return r.callForValue(OpCall, toolRequest{Tool: tool, Arguments: r.namedArguments("tools."+tool, c.Argument(0))})
		}
		if len(c.Arguments) > 1 {
			panic(r.TypeError(tool + ": a tool takes one object, such as { name: value }"))
		}
		request := toolRequest{Tool: tool, Arguments: []byte("{}")}
		if len(c.Arguments) == 1 && !goja.IsUndefined(c.Arguments[0]) {
			request.Arguments = r.namedArguments(tool, c.Arguments[0])
		}
		return r.sendCall(request, 0, r.callStack())
	})
	if r.toolFunctions == nil {
		r.toolFunctions = map[string]*goja.Object{}
	}
	r.toolFunctions[tool] = f
	return f
}

// maxResumes is how often one tool call may wait for the client.
const maxResumes = 32

// sendCall calls a tool. It resumes the call when the client has responded to the requests of the
// tool.
func (r *execution) sendCall(request toolRequest, resumed int, stack []goja.StackFrame) goja.Value {
	op := OpCall
	if request.Resume != nil {
		op = OpResume
	}
	return r.callHost(op, mustJSON(request), func(a hostResponse) (v, thrown goja.Value) {
		switch {
		case a.refusal != nil && a.refusal.Code == Asks:
			return r.requestInput(request, resumed, a.refusal.Details, stack)
		case a.refusal != nil:
			return nil, r.toolError(request.Tool, a.refusal, stack)
		}
		v, err := r.Decode(string(a.data))
		if err != nil {
			return nil, r.toolError(request.Tool, &HostError{Code: Unavailable, Message: "the result of the tool cannot be decoded"}, stack)
		}
		r.markContentBlocks(v)
		return v, nil
	})
}

// inputRequired are the details of a refusal by which a host requests input from the client.
type inputRequired struct {
	Requests json.RawMessage `json:"requests"`
	State    json.RawMessage `json:"state"`
}

// payload returns the payload of the operation ask.
func (a *inputRequired) payload() []byte {
	return mustJSON(map[string]json.RawMessage{"requests": a.Requests})
}

// requestInput sends the requests of a tool to the client, and returns the promise of the resumed
// call.
func (r *execution) requestInput(request toolRequest, resumed int, details []byte, stack []goja.StackFrame) (v, thrown goja.Value) {
	var asks inputRequired
	if json.Unmarshal(details, &asks) != nil || asks.Requests == nil || resumed == maxResumes {
		return nil, r.toolError(request.Tool, &HostError{Code: Denied, Message: "the tool sends too many input requests"}, stack)
	}
	return r.callHost(OpAsk, asks.payload(), func(a hostResponse) (v, thrown goja.Value) {
		if a.refusal != nil {
			return nil, r.toolError(request.Tool, a.refusal, stack)
		}
		var answered struct {
			Responses json.RawMessage `json:"responses"`
		}
		if json.Unmarshal(a.data, &answered) != nil {
			return nil, r.toolError(request.Tool, &HostError{Code: Unavailable, Message: "the response of the client cannot be decoded"}, stack)
		}
		request.Resume = &toolResume{State: asks.State, Responses: answered.Responses}
		return r.sendCall(request, resumed+1, stack), nil
	}), nil
}

// toolError returns the error object for a failed tool call: a HostError with the name of the tool.
func (r *execution) toolError(tool string, refused *HostError, stack []goja.StackFrame) *goja.Object {
	o := r.hostError(refused, stack)
	_ = o.Set("tool", tool)
	if made, ok := r.States[o].(*scriptError); ok {
		made.tool = tool
		made.refusal = refused.Code
	}
	return o
}

// guardPromises makes promises of agent code throw when they are converted to text, iterated, or
// asked for a member of lists. These are forgotten awaits, which would otherwise go unnoticed.
// Members that the code sets itself remain accessible.
func (r *execution) guardPromises() {
	if r.Program.Kind != Code {
		return
	}
	prototype, _ := r.Builtin("Promise").Get("prototype").(*goja.Object)
	if prototype == nil {
		return
	}
	refuse := func(wrong string) *goja.Object {
		return r.Function("", func(goja.FunctionCall) goja.Value {
			panic(r.TypeError(wrong + "; write await before the call that returns it"))
		})
	}
	_ = prototype.DefineDataPropertySymbol(goja.SymToPrimitive, refuse(compiler.PromiseAsText), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataPropertySymbol(goja.SymIterator, refuse(compiler.PromiseAsList), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	for _, name := range slices.Concat(listMembers, []string{"length", "slice", "toString"}) {
		if r.Program.Mentions(name) {
			r.guardMember(prototype, name, refuse("a promise has no member \""+name+"\""))
		}
	}
	for i := range int64(firstElements) {
		r.guardMember(prototype, builtins.Index(i), refuse(compiler.PromiseAsList))
	}
}

// firstElements is the number of elements that are guarded by index: a loop over a list starts with
// one of them.
const firstElements = 4

// guardMember makes reading a member of a promise throw, unless the code has set it.
func (r *execution) guardMember(prototype *goja.Object, name string, refuse *goja.Object) {
	set := r.Function("", func(c goja.FunctionCall) goja.Value {
		if o, ok := c.This.(*goja.Object); ok {
			_ = o.DefineDataProperty(name, c.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
		return goja.Undefined()
	})
	_ = prototype.DefineAccessorProperty(name, refuse, set, goja.FLAG_TRUE, goja.FLAG_FALSE)
}
