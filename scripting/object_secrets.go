package scripting

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeSecrets makes secrets: a member for every grant, which asks for its value
// when the body first looks at it. No loop over the members and no JSON finds
// them, so that nothing is read or shown that the body does not name.
func (r *execution) makeSecrets() *goja.Object {
	o := r.Runtime.NewObject()
	for _, granted := range r.Program.Objects {
		if granted.Kind == "secrets" {
			var value goja.Value
			r.Accessor(o, granted.Name, func(goja.FunctionCall) goja.Value {
				if value == nil {
					value = r.readSecret(granted.Name)
				}
				return value
			}, nil)
		}
	}
	_ = o.SetPrototype(nil)
	if _, err := r.Freeze()(goja.Undefined(), o); err != nil {
		panic(err)
	}
	return o
}

// readSecret asks for the value of a secret, and throws what refuses it.
func (r *execution) readSecret(name string) goja.Value {
	given, failure := r.callHostSync(OpSecret, mustJSON(struct {
		Name string `json:"name"`
	}{name}))
	var read struct{ Value *string }
	switch {
	case failure != nil:
		r.abort(failure)
		panic(r.Throwable(jsvalue.ErrStopped))
	case given.refusal != nil:
		panic(r.hostError(given.refusal, r.callStack()))
	case json.Unmarshal(given.data, &read) != nil || read.Value == nil:
		panic(r.hostError(&HostError{Code: Unavailable, Message: "the secret was not read"}, r.callStack()))
	}
	return r.Runtime.ToValue(*read.Value)
}
