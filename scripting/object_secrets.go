package scripting

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeSecrets returns secrets, with an accessor for every grant. The value is read from the host on
// first access. The members are not enumerable, so that no loop and no JSON reads or shows a secret
// that the script does not name.
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

// readSecret returns the value of a secret, or throws the error of the host.
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
