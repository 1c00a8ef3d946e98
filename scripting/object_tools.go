package scripting

import (
	"encoding/json"
	"slices"

	"github.com/dop251/goja"
)

// toolSet is tools, or a group of tools in code: a function for each member, made when a
// script looks for it. A tool that a pattern of the grant covers has a function whether or
// not there is such a tool: the host decides that at the call.
type toolsObject struct {
	r *execution
	// tool returns the tool of a member, and false if there is none.
	tool  func(member string) (tool string, ok bool)
	names func() []string
}

// nameless returns an object that has no members but its own. As text it throws.
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

// Set refuses: a script may not change which tools there are.
func (s toolsObject) Set(string, goja.Value) bool { return false }

// Delete removes no member.
func (s toolsObject) Delete(name string) bool { return !s.Has(name) }

// Keys returns the names of the members, without those that patterns cover.
func (s toolsObject) Keys() []string { return slices.Clone(s.names()) }

// toolRequest is the payload of [OpCall] and [OpResume]. Arguments are an object, or absent; Resume is there
// in a call that goes on.
type toolRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Resume    *toolResume     `json:"resume,omitempty"`
}

// toolResume goes on with a call that has asked (see [Asks]).
type toolResume struct {
	State     json.RawMessage `json:"state"`
	Responses json.RawMessage `json:"responses"`
}

// askValue starts an operation whose answer is a value, and returns the promise of it.
func (r *execution) callForValue(op string, request any) goja.Value {
	return r.callAndRead(op, mustJSON(request), func(r *execution, data []byte) (goja.Value, error) { return r.Decode(string(data)) })
}

// namedArguments returns the arguments of a function as JSON, nil where there are
// none.
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
		panic(r.TypeError(function + ": the arguments hold half of a character, as text that was cut may; keep whole characters"))
	}
	return out
}

// moduleRequest is the payload of the operation module. Arguments are an object,
// or absent.
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
