package scripting

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// demand asks the host and waits for the answer, while the body does nothing else.
func (r *run) demand(op string, payload []byte) (answer, *Failure) {
	r.loop.seq++
	question := entryRecord{kind: entryAsked, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	if _, failure := r.book.note(question); failure != nil {
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
func (r *run) readSecret(name string) goja.Value {
	given, failure := r.demand(OpSecret, mustJSON(struct {
		Name string `json:"name"`
	}{name}))
	var read struct{ Value *string }
	switch {
	case failure != nil:
		r.abort(failure)
		panic(r.Throwable(jsvalue.ErrStopped))
	case given.refusal != nil:
		panic(r.hostError(given.refusal, r.at()))
	case json.Unmarshal(given.data, &read) != nil || read.Value == nil:
		panic(r.hostError(&HostError{Code: Unavailable, Message: "the secret was not read"}, r.at()))
	}
	return r.Runtime.ToValue(*read.Value)
}

// execRequest is the payload of the operation exec.run.
type execRequest struct {
	Grant  string            `json:"grant"`
	Params map[string]string `json:"params"`
}

// execAnswer is the answer. Of each output there is one of the two forms.
type execAnswer struct {
	Code     *int   `json:"code"`
	Stdout   string `json:"stdout"`
	Stdout64 string `json:"stdout64"`
	Stderr   string `json:"stderr"`
	Stderr64 string `json:"stderr64"`
}

// execute starts a program and returns the promise of how it ends.
func (r *run) execute(grant string, params goja.Value) goja.Value {
	request := execRequest{Grant: grant, Params: r.execParams(grant, params)}
	return r.askAndRead("exec.run", mustJSON(request), (*run).execEnded)
}

// execParams reads the values of parameters: texts and whole numbers.
func (r *run) execParams(grant string, v goja.Value) map[string]string {
	params := map[string]string{}
	if builtins.IsNothing(v) {
		return params
	}
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) != jsvalue.Plain {
		panic(r.TypeError("exec." + grant + ": the parameters must be an object, such as { name: value }"))
	}
	for _, name := range o.Keys() {
		r.Proceed()
		params[name] = r.execParam(grant, name, o.Get(name))
	}
	return params
}

func (r *run) execParam(grant, name string, v goja.Value) string {
	if text, ok := v.(goja.String); ok {
		if jsvalue.HasLoneSurrogate(text) {
			panic(r.TypeError("exec." + grant + ": " + name + " holds half of a character, as text that was cut may"))
		}
		return text.String()
	}
	n, ok := jsvalue.Whole(v)
	if !ok {
		panic(r.TypeError("exec." + grant + ": " + name + " must be a string or a whole number"))
	}
	return builtins.Index(n)
}

// execEnded makes what a script sees of a program that has ended: code, stdout,
// stderr, and bytes(), which are those of stdout.
func (r *run) execEnded(data []byte) (goja.Value, error) {
	var told execAnswer
	if json.Unmarshal(data, &told) != nil || told.Code == nil {
		return nil, errUnreadable
	}
	stdout, err1 := outputOf(told.Stdout, told.Stdout64)
	stderr, err2 := outputOf(told.Stderr, told.Stderr64)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	o := r.Runtime.NewObject()
	_ = o.Set("code", *told.Code)
	_ = o.Set("stdout", bodyText(stdout))
	_ = o.Set("stderr", bodyText(stderr))
	r.Method(o, "bytes", func(goja.FunctionCall) goja.Value { return r.NewBytes([]byte(stdout)) })
	return o, nil
}

func outputOf(text, encoded string) (string, error) {
	if encoded == "" {
		return text, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return string(data), err
}
