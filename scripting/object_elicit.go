package scripting

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

type inputState struct {
	// used counts, for each global, the requests without a key.
	used map[string]int
	// open are the keys without a response.
	open map[string]bool
}

// keyedRequest is a request with the key of its response.
type keyedRequest struct {
	key string
	*askRequest
}

// makeElicit returns elicit(key?, { message, schema | url }), elicit.form and elicit.url.
func (r *execution) makeElicit() *goja.Object {
	o := r.Function("elicit", func(c goja.FunctionCall) goja.Value {
		key, what := r.askKey("elicit", c)
		return r.requestOne("elicit", key, r.elicitation(elicitShape(), what))
	})
	r.Method(o, "form", func(c goja.FunctionCall) goja.Value {
		return r.requestObject(r.elicitation(elicitShape().Only("elicit.form", 2, "message", "schema"), c.Argument(0)))
	})
	r.Method(o, "url", func(c goja.FunctionCall) goja.Value {
		return r.requestObject(r.elicitation(elicitShape().Only("elicit.url", 2, "message", "url", "elicitationId"), c.Argument(0)))
	})
	return o
}

// makeSample returns sample(key?, { messages | prompt, … }) and sample.message.
func (r *execution) makeSample() *goja.Object {
	o := r.Function("sample", func(c goja.FunctionCall) goja.Value {
		key, what := r.askKey("sample", c)
		return r.requestOne("sample", key, r.sampling("sample", what))
	})
	r.Method(o, "message", func(c goja.FunctionCall) goja.Value {
		return r.requestObject(r.sampling("sample.message", c.Argument(0)))
	})
	return o
}

func (r *execution) makeRoots() *goja.Object {
	list := &askRequest{method: methodRoots, params: []byte("{}")}
	o := r.Function("roots", func(c goja.FunctionCall) goja.Value {
		key, none := r.askKey("roots", c)
		if !builtins.IsNothing(none) {
			panic(r.TypeError("roots(key): key must be a string"))
		}
		return r.requestOne("roots", key, list)
	})
	r.Method(o, "list", func(goja.FunctionCall) goja.Value { return r.requestObject(list) })
	return o
}

// requestObject returns the object for a request in a script.
func (r *execution) requestObject(request *askRequest) goja.Value {
	o := r.Runtime.NewObject()
	r.Bind(o, request)
	return o
}

// askForms maps globals to the form of a call. Their last argument is a request.
var askForms = map[string]string{"elicit": "elicit({ message, schema })", "sample": "sample({ prompt })"}

// askKey splits the arguments (key?, what).
func (r *execution) askKey(name string, c goja.FunctionCall) (key string, what goja.Value) {
	first := c.Argument(0)
	if _, text := first.(goja.String); text {
		if question := askForms[name]; question != "" && len(c.Arguments) == 1 {
			panic(r.TypeError(name + ": a string is the key of a question; the question itself is missing: write " + question))
		}
		r.checkKey(name, first.String())
		return first.String(), c.Argument(1)
	}
	if builtins.IsNothing(first) && len(c.Arguments) > 1 {
		return "", c.Argument(1)
	}
	return "", first
}

func (r *execution) checkKey(what, key string) {
	const others = "_.-"
	fits := len(key) > 0 && len(key) <= 64
	for i := 0; fits && i < len(key); i++ {
		fits = syntax.IsAlnum(key[i]) || strings.IndexByte(others, key[i]) >= 0
	}
	if !fits {
		panic(r.TypeError(what + ": a key must be 1 to 64 letters, digits, _, . and -"))
	}
}

// nextKey returns the default key of a request: the name of the global, with a number from the
// second request on.
func (r *execution) nextKey(name string) string {
	if r.inputs.used == nil {
		r.inputs.used = map[string]int{}
	}
	for {
		r.inputs.used[name]++
		key := name
		if n := r.inputs.used[name]; n > 1 {
			key += "_" + strconv.Itoa(n)
		}
		if !r.inputs.open[key] {
			return key
		}
	}
}

// requestOne sends one request. A denial is thrown.
func (r *execution) requestOne(name, key string, request *askRequest) goja.Value {
	if key == "" {
		key = r.nextKey(name)
	}
	return r.send(name, []keyedRequest{{key, request}}, func(replies []inputResponse, stack []goja.StackFrame) (v, thrown goja.Value) {
		if denied := replies[0].denied; denied != "" {
			return nil, r.newCallError("AskDenied", declinedMessage(request.method, denied), denied, stack)
		}
		return replies[0].value, nil
	})
}

// requestMany is ask({ key: request, … }). Its result has the same keys.
func (r *execution) requestMany(c goja.FunctionCall) goja.Value {
	from, ok := c.Argument(0).(*goja.Object)
	if !ok || jsvalue.KindOf(from) != jsvalue.Plain {
		panic(r.TypeError("ask({ key: request, … }): an object is needed"))
	}
	var requests []keyedRequest
	for _, key := range from.Keys() {
		r.Proceed()
		r.checkKey("ask", key)
		o, _ := from.Get(key).(*goja.Object)
		request, ok := r.States[o].(*askRequest)
		if !ok {
			panic(r.TypeError("ask: " + key + " must be made by elicit.form, elicit.url, sample.message or roots.list"))
		}
		if requests = append(requests, keyedRequest{key, request}); len(requests) > maxAskRequests {
			panic(r.TypeError("ask: there are more than " + strconv.Itoa(maxAskRequests) + " requests"))
		}
	}
	if len(requests) == 0 {
		panic(r.TypeError("ask({ key: request, … }): there is no request"))
	}
	return r.send("ask", requests, func(replies []inputResponse, _ []goja.StackFrame) (v, thrown goja.Value) {
		o := r.Runtime.NewObject()
		for i, request := range requests {
			_ = jsvalue.Define(o, request.key, r.responseObject(replies[i]))
		}
		return o, nil
	})
}

// send sends requests to the client. It returns the promise of the value that read returns for the
// responses.
func (r *execution) send(what string, requests []keyedRequest, read func([]inputResponse, []goja.StackFrame) (v, thrown goja.Value)) goja.Value {
	payload, stack := r.inputPayload(what, requests), r.callStack()
	r.open(what, requests)
	return r.callHost(OpAsk, payload, func(a hostResponse) (v, thrown goja.Value) {
		for _, request := range requests {
			delete(r.inputs.open, request.key)
		}
		if a.refusal != nil {
			return nil, r.inputError(a.refusal, stack)
		}
		replies, refused := r.readResponses(a.data, requests)
		if refused != nil {
			return nil, r.hostError(refused, stack)
		}
		return read(replies, stack)
	})
}

// open reserves the keys of requests until their responses.
func (r *execution) open(what string, requests []keyedRequest) {
	if i := slices.IndexFunc(requests, func(request keyedRequest) bool { return r.inputs.open[request.key] }); i >= 0 {
		panic(r.TypeError(what + ": " + requests[i].key + " is already requested and has no response yet; use a unique key for each request"))
	}
	if r.inputs.open == nil {
		r.inputs.open = map[string]bool{}
	}
	for _, request := range requests {
		r.inputs.open[request.key] = true
	}
}

func (r *execution) inputPayload(what string, requests []keyedRequest) []byte {
	out := []byte(`{"requests":[`)
	for i, request := range requests {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"key":"`+request.key+`","method":"`+request.method+`","params":`...)
		out = append(append(out, request.params...), '}')
	}
	if len(out) > maxAskBytes {
		panic(r.TypeError(what + ": the requests have more than " + strconv.Itoa(maxAskBytes) + " bytes of JSON together"))
	}
	return append(out, `]}`...)
}
