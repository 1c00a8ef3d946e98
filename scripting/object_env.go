package scripting

import (
	"encoding/json"

	"github.com/dop251/goja"
)

// makeEnv makes env: an object with those of the granted variables that are set.
// They are asked for when the body begins, and are the same in every replay.
func (r *run) makeEnv() (goja.Value, error) {
	a, failure := r.demand("env", []byte("{}"))
	switch {
	case failure != nil:
		r.abort(failure)
		return nil, errStopped
	case a.refusal != nil && r.ctx.Err() != nil:
		return nil, errStopped
	case a.refusal != nil:
		return nil, a.refusal
	}
	return r.data(a.data, true)
}

// demand asks the host and waits for the answer, while the body does nothing else.
func (r *run) demand(op string, payload []byte) (answer, *Failure) {
	r.loop.seq++
	question := entryRecord{kind: entryAsked, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	_, past, failure := r.book.recall(question)
	if failure == nil && !past {
		failure = r.book.write(question)
	}
	if failure != nil {
		return answer{}, failure
	}
	given, failure := r.awaited(op, payload)
	if failure == nil && given.panicked {
		failure = hostPanic(op)
	}
	return given, failure
}

// awaited returns the answer to the last host call: from the journal, where it
// follows the call at once, or else from the host.
func (r *run) awaited(op string, payload []byte) (given answer, failure *Failure) {
	before, ok, failure := r.book.event()
	switch {
	case failure != nil:
		return answer{}, failure
	case ok:
		return before.given(), nil
	}
	if arrived, ok := r.book.arrivalOf(r.loop.seq); ok {
		given = arrived.given()
	} else {
		if remote, ok := r.host.(Remote); ok {
			remote.Begin(r.loop.seq, op, payload, r.book.tail())
		}
		given = do(r.ctx, r.host, r.loop.seq, op, payload)
	}
	return given, r.book.write(given.record())
}

// OpSecret is the operation by which a body reads a secret.
const OpSecret = "secret"

// makeSecrets makes secrets: a member for every grant, which asks for its value
// when the body first looks at it. No loop over the members and no JSON finds
// them, so that nothing is read or shown that the body does not name.
func (r *run) makeSecrets() *goja.Object {
	o := r.rt.NewObject()
	for _, granted := range r.program.objects {
		if granted.Kind == "secrets" {
			var value goja.Value
			r.accessor(o, granted.Name, func(goja.FunctionCall) goja.Value {
				if value == nil {
					value = r.readSecret(granted.Name)
				}
				return value
			}, nil)
		}
	}
	_ = o.SetPrototype(nil)
	if _, err := r.freeze()(goja.Undefined(), o); err != nil {
		panic(err)
	}
	return o
}

// readSecret asks for the value of a secret, and throws what refuses it.
func (r *run) readSecret(name string) goja.Value {
	given, failure := r.demand(OpSecret, mustJSON(struct {
		Name string `json:"name"`
	}{name}))
	var read struct{ Value *string }
	switch {
	case failure != nil:
		r.abort(failure)
		panic(r.throwable(errStopped))
	case given.refusal != nil:
		panic(r.hostError(given.refusal, r.at()))
	case json.Unmarshal(given.data, &read) != nil || read.Value == nil:
		panic(r.hostError(&HostError{Code: Unavailable, Message: "the secret was not read"}, r.at()))
	}
	return r.rt.ToValue(*read.Value)
}
