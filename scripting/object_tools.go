package scripting

import (
	"encoding/json"
	"slices"

	"github.com/dop251/goja"
)

// toolsObject is tools, or a group of tools in agent code. It has a function for each member,
// created on first access. For a tool that a pattern of the grant covers, there is a function
// whether or not the tool exists: the host decides at the call.
type toolsObject struct {
	r *execution
	// tool returns the tool of a member; ok is false if there is none.
	tool  func(member string) (tool string, ok bool)
	names func() []string
}

// bareObject returns an object without inherited members. Its conversion to text throws.
func (r *execution) bareObject(members goja.DynamicObject, asText string) *goja.Object {
	prototype := r.Runtime.CreateObject(nil)
	noText := r.Function("", func(goja.FunctionCall) goja.Value { panic(r.TypeError(asText)) })
	_ = prototype.DefineDataPropertySymbol(goja.SymToPrimitive, noText, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	o := r.Runtime.NewDynamicObject(members)
	_ = o.SetPrototype(prototype)
	return o
}

// Get returns the function of a member; nil if there is none.
func (s toolsObject) Get(name string) goja.Value {
	if tool, ok := s.tool(name); ok {
		return s.r.toolFunction(tool)
	}
	return nil
}

// Has reports whether there is a member.
func (s toolsObject) Has(name string) bool {
	_, ok := s.tool(name)
	return ok
}

// Set returns false: scripts cannot change the tools.
func (s toolsObject) Set(string, goja.Value) bool { return false }

// Delete reports whether there is no such member; it removes none.
func (s toolsObject) Delete(name string) bool { return !s.Has(name) }

// Keys returns the names of the members, without tools that patterns cover.
func (s toolsObject) Keys() []string { return slices.Clone(s.names()) }

// toolRequest is the payload of [OpCall] and [OpResume]. Arguments is an object, or absent. Resume
// is set for a resumed call.
type toolRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Resume    *toolResume     `json:"resume,omitempty"`
}

// toolResume is the state of a call that requested input (see [Asks]).
type toolResume struct {
	State     json.RawMessage `json:"state"`
	Responses json.RawMessage `json:"responses"`
}

// callForValue starts an operation with a JSON value as result, and returns its promise.
func (r *execution) callForValue(op string, request any) goja.Value {
	return r.callAndRead(op, mustJSON(request), func(r *execution, data []byte) (goja.Value, error) { return r.Decode(string(data)) })
}

// namedArguments returns the arguments of a function as JSON; nil if there are none.
func (r *execution) namedArguments(function string, v goja.Value) json.RawMessage {
	if goja.IsUndefined(v) {
		return nil
	}
	out, err := r.Encode(v, true)
	if err != nil {
		panic(r.Throwable(err))
	}
	if len(out) == 0 || out[0] != '{' {
		panic(r.TypeError(function + ": the arguments must be an object, such as { name: value }"))
	}
	if hasSurrogateEscape(out) {
		panic(r.TypeError(function + ": the arguments contain half of a character, like truncated text; keep whole characters"))
	}
	return out
}

// moduleRequest is the payload of the operation module. Arguments is an object, or absent.
type moduleRequest struct {
	Module    string          `json:"module"`
	Function  string          `json:"function"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (r *execution) makeModule(name string) *goja.Object {
	o := r.Runtime.NewObject()
	for _, f := range r.Program.Objects {
		if f.Kind != "modules."+name {
			continue
		}
		r.Method(o, f.Name, func(c goja.FunctionCall) goja.Value {
			arguments := r.namedArguments("modules."+name+"."+f.Name, c.Argument(0))
			return r.callForValue(OpModule, moduleRequest{Module: name, Function: f.Name, Arguments: arguments})
		})
	}
	return o
}
