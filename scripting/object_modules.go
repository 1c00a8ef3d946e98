package scripting

import (
	"encoding/json"
	"strings"

	"github.com/dop251/goja"
)

// makeModules makes modules: one object for every grant, with the functions that
// the body can reach.
func (r *run) makeModules() *goja.Object { return r.grants("modules", (*run).makeModule) }

// moduleRequest is the payload of the operation module. Arguments are an object,
// or absent.
type moduleRequest struct {
	Module    string          `json:"module"`
	Function  string          `json:"function"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// makeModule makes modules.NAME.
func (r *run) makeModule(name string) *goja.Object {
	o := r.rt.NewObject()
	for _, f := range r.program.objects {
		if f.Kind != "modules."+name {
			continue
		}
		r.method(o, f.Name, func(c goja.FunctionCall) goja.Value {
			arguments := r.namedArguments("modules."+name+"."+f.Name, c.Argument(0))
			return r.askValue("module", moduleRequest{Module: name, Function: f.Name, Arguments: arguments})
		})
	}
	return o
}

// moduleMembers returns the functions of modules.NAME, and nil for every other object.
func (c *compilation) moduleMembers(object string) []string {
	if !strings.HasPrefix(object, "modules.") {
		return nil
	}
	return c.granted(object)
}
