package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// askGrants grants all requests to the client.
func askGrants() []Object {
	return []Object{{Kind: "ask", Name: "elicit"}, {Kind: "ask", Name: "sample"}, {Kind: "ask", Name: "roots"}, {Kind: "ask", Name: "ask"}}
}

// asker returns the source of a tool with requests to the client.
func asker(body string) Source {
	src := tool(body)
	src.Objects = append(src.Objects, askGrants()...)
	return src
}

// question is one request of an ask.
type question struct {
	Key, Method string
	Params      json.RawMessage
}

func questions(t testing.TB, payload []byte) []question {
	t.Helper()
	var asked struct{ Requests []question }
	if err := json.Unmarshal(payload, &asked); err != nil || len(asked.Requests) == 0 {
		t.Fatalf("%v: %s", err, payload)
	}
	return asked.Requests
}

// answered returns the response to an ask with a result for every request.
func answered(t testing.TB, payload []byte, result func(question) string) []byte {
	t.Helper()
	var responses []string
	for _, q := range questions(t, payload) {
		responses = append(responses, fmt.Sprintf("%q:%s", q.Key, result(q)))
	}
	return []byte(`{"responses":{` + strings.Join(responses, ",") + `}}`)
}

// willing returns a response that identifies the request.
func willing(q question) string {
	switch q.Method {
	case methodElicit:
		return fmt.Sprintf(`{"action":"accept","content":{"key":%q}}`, q.Key)
	case methodSample:
		return fmt.Sprintf(`{"role":"assistant","content":{"type":"text","text":%q},"model":"m","stopReason":"endTurn"}`, q.Key)
	}
	return fmt.Sprintf(`{"roots":[{"uri":"file:///%s","name":%q}]}`, q.Key, q.Key)
}

// askingHost responds to every ask at once, and echoes requests.
func askingHost(t testing.TB, result func(question) string) *fakeHost {
	return &fakeHost{answer: func(ctx context.Context, op string, payload []byte) ([]byte, error) {
		if op == OpAsk {
			return answered(t, payload, result), nil
		}
		return echo(ctx, op, payload)
	}}
}

const form = `{ message: "Who?", schema: { type: "object", properties: { name: { type: "string" } } } }`

// TestSample_deprecatedPreferences accepts the names of the sampling request of the guide, and
// warns.
func TestSample_deprecatedPreferences(t *testing.T) {
	host := askingHost(t, willing)
	out := runWith(t, call(compiled(t, asker(`await sample({ prompt: "a", modelPreferences: { hints: [{ name: "big" }], intelligenceLevel: 0.5, costLevel: 0.25 } })`)), `{}`), host)
	want := []string{
		`console {"level":"warn","message":"sample: modelPreferences: intelligenceLevel is deprecated; write intelligencePriority"}`,
		`console {"level":"warn","message":"sample: modelPreferences: costLevel is deprecated; write costPriority"}`,
		`ask {"requests":[{"key":"sample","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"modelPreferences":{"hints":[{"name":"big"}],"costPriority":0.25,"intelligencePriority":0.5},"maxTokens":1000}}]}`,
	}
	if diff := cmp.Diff(want, host.calls()); diff != "" || out.Failure != nil {
		t.Errorf("%s (-want +got):\n%s", shown(out), diff)
	}
}

func TestInputRequest_payload(t *testing.T) {
	const sampled = `{"requests":[{"key":"sample","method":"sampling/createMessage","params":`
	for _, c := range []struct{ body, want string }{
		{`await elicit(` + form + `)`,
			`{"requests":[{"key":"elicit","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}]}`},
		{`await elicit("user_name", { message: "Go", url: new URL("HTTPS://a.example"), elicitationId: "e1" })`,
			`{"requests":[{"key":"user_name","method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://a.example/","elicitationId":"e1"}}]}`},
		{`await sample({ prompt: "What <is> it?", maxTokens: 50 })`,
			sampled + `{"messages":[{"role":"user","content":{"type":"text","text":"What <is> it?"}}],"maxTokens":50}}]}`},
		{`await sample({ messages: [{ role: "user", content: [content.text("a")] }, { role: "assistant", content: "b" }], maxTokens: null })`,
			sampled + `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":{"type":"text","text":"b"}}],"maxTokens":1000}}]}`},
		{`await sample({ prompt: "a", systemPrompt: "s", temperature: 0.5, stopSequences: ["x"], includeContext: "none", metadata: { z: 1, a: 2 }, tools: [{ name: "t" }], toolChoice: { mode: "auto" }, modelPreferences: { speedPriority: 1, hints: [{ name: "big" }], intelligencePriority: 0.5, costPriority: 0 } })`,
			sampled + `{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"modelPreferences":{"hints":[{"name":"big"}],"costPriority":0,"speedPriority":1,"intelligencePriority":0.5},"systemPrompt":"s","includeContext":"none","temperature":0.5,"maxTokens":1000,"stopSequences":["x"],"metadata":{"z":1,"a":2},"tools":[{"name":"t"}],"toolChoice":{"mode":"auto"}}}]}`},
		{`await roots()`, `{"requests":[{"key":"roots","method":"roots/list","params":{}}]}`},
		{`await roots("client_roots")`, `{"requests":[{"key":"client_roots","method":"roots/list","params":{}}]}`},
		{`await ask({ user_name: elicit.form(` + form + `), greeting: sample.message({ prompt: "Greet", maxTokens: 50 }), client_roots: roots.list(), page: elicit.url({ message: "m", url: "http://a/b", elicitationId: "x" }) })`,
			`{"requests":[{"key":"user_name","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}},` +
				`{"key":"greeting","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Greet"}}],"maxTokens":50}},` +
				`{"key":"client_roots","method":"roots/list","params":{}},` +
				`{"key":"page","method":"elicitation/create","params":{"mode":"url","message":"m","url":"http://a/b","elicitationId":"x"}}]}`},
	} {
		host := askingHost(t, willing)
		out := runWith(t, call(compiled(t, asker(c.body)), `{}`), host)
		if diff := cmp.Diff([]string{"ask " + c.want}, host.calls()); diff != "" || out.Failure != nil {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

// The schemas of the MCP conformance suite.
func TestElicitForm_schema(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`,
		`{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"}]},"legacyEnum":{"type":"string","enum":["opt1"],"enumNames":["Option One"]},"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1"]}},"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"}]}}}}`,
		`{"type":"object","properties":{},"required":[],"$schema":"https://json-schema.org/draft/2020-12/schema","description":"<é & \u2028>"}`,
	} {
		host := askingHost(t, willing)
		out := runWith(t, call(compiled(t, asker(`await elicit({ message: "m", schema: input })`)), schema), host)
		if out.Failure != nil {
			t.Fatalf("%s: %s", schema, shown(out))
		}
		var params struct{ RequestedSchema json.RawMessage }
		payload := strings.TrimPrefix(host.calls()[0], "ask ")
		if err := json.Unmarshal(questions(t, []byte(payload))[0].Params, &params); err != nil {
			t.Fatal(err)
		}
		if got := string(params.RequestedSchema); got != strings.ReplaceAll(schema, `\u2028`, "\u2028") {
			t.Errorf("got  %s\nwant %s", got, schema)
		}
	}
}

func TestInputResponse_value(t *testing.T) {
	const denial = `try { await X } catch (e) { return [e instanceof AskDenied, e.reason, e.message] }`
	const two = `return await ask({ a: elicit.form(` + form + `), b: sample.message({ prompt: "p" }), c: roots.list(), d: elicit.url({ message: "m", url: "https://a" }) })`
	for _, c := range []struct{ name, result, body, want string }{
		{"a form", `{"action":"accept","content":{"name":"Ann","tags":["a"]},"_meta":{}}`, `return await elicit(` + form + `)`, `{"action":"accept","content":{"name":"Ann","tags":["a"]}}`},
		{"a form without content", `{"action":"accept"}`, `return await elicit(` + form + `)`, `{"action":"accept","content":{}}`},
		{"a page", `{"action":"accept","content":{"x":1}}`, `return await elicit({ message: "m", url: "https://a" })`, `{"action":"accept"}`},
		{"a message", `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m","stopReason":"endTurn"}`, `return (await sample({ prompt: "p" })).content.text`, `"Paris"`},
		{"several blocks", `{"role":"assistant","content":[{"type":"text","text":"a"}],"model":"m"}`, `return (await sample({ prompt: "p" })).content.length`, `1`},
		{"roots", `{"roots":[{"uri":"file:///a","name":"A"},{"uri":"file:///b"}]}`, `return await roots()`, `[{"uri":"file:///a","name":"A"},{"uri":"file:///b"}]`},
		{"no roots", `{"roots":[]}`, `return await roots()`, `[]`},
		{"a question that is declined", `{"action":"decline"}`, strings.ReplaceAll(denial, "X", `elicit(`+form+`)`), `[true,"declined","the question to the user was declined"]`},
		{"a question that is dismissed", `{"action":"cancel"}`, strings.ReplaceAll(denial, "X", `elicit(`+form+`)`), `[true,"cancelled","the question to the user was cancelled"]`},
		{"a model that is declined", `{"action":"decline"}`, strings.ReplaceAll(denial, "X", `sample({ prompt: "p" })`), `[true,"declined","the request to the client's model was declined"]`},
		{"roots that are declined", `{"action":"decline"}`, strings.ReplaceAll(denial, "X", `roots()`), `[true,"declined","the request for the client's roots was declined"]`},
		{"several that are declined", `{"action":"decline"}`, two, `{"a":{"action":"decline"},"b":{"action":"decline"},"c":{"action":"decline"},"d":{"action":"decline"}}`},
		{"several that are dismissed", `{"action":"cancel"}`, two, `{"a":{"action":"cancel"},"b":{"action":"cancel"},"c":{"action":"cancel"},"d":{"action":"cancel"}}`},
		{"not caught", `{"action":"cancel"}`, `await roots()`, `failure AskDenied: the request for the client's roots was cancelled`},
	} {
		host := askingHost(t, func(question) string { return c.result })
		if got := shown(runWith(t, call(compiled(t, asker(c.body)), `{}`), host)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	want := `{"a":{"action":"accept","content":{"key":"a"}},"b":{"role":"assistant","content":{"type":"text","text":"b"},"model":"m","stopReason":"endTurn"},"c":[{"uri":"file:///c","name":"c"}],"d":{"action":"accept"}}`
	if got := shown(runWith(t, call(compiled(t, asker(two)), `{}`), askingHost(t, willing))); got != want {
		t.Errorf("several requests: got %s, want %s", got, want)
	}
}

func TestInputResponse_invalid(t *testing.T) {
	const refused = `failure Thrown: the response for X does not match the request`
	for _, c := range []struct{ answer, body, want string }{
		{`{"responses":{"elicit":12345}}`, `await elicit(` + form + `)`, strings.Replace(refused, "X", "elicit", 1)},
		{`{"responses":{"elicit":{"content":{}}}}`, `await elicit(` + form + `)`, strings.Replace(refused, "X", "elicit", 1)},
		{`{"responses":{"elicit":{"action":"accept","content":"x"}}}`, `await elicit(` + form + `)`, strings.Replace(refused, "X", "elicit", 1)},
		{`{"responses":{"other":{"action":"accept"}}}`, `await elicit(` + form + `)`, strings.Replace(refused, "X", "elicit", 1)},
		{`{"responses":null}`, `await elicit(` + form + `)`, strings.Replace(refused, "X", "elicit", 1)},
		{`{"responses":{"sample":{"role":"assistant","model":"m","content":"text"}}}`, `await sample({ prompt: "p" })`, strings.Replace(refused, "X", "sample", 1)},
		{`{"responses":{"sample":{"role":"assistant","content":{}}}}`, `await sample({ prompt: "p" })`, strings.Replace(refused, "X", "sample", 1)},
		{`{"responses":{"roots":{"roots":[{"name":"a"}]}}}`, `await roots()`, strings.Replace(refused, "X", "roots", 1)},
		{`{"responses":{"roots":{"roots":{}}}}`, `await roots()`, strings.Replace(refused, "X", "roots", 1)},
		{`{"responses":{"roots":{}}}`, `try { await roots() } catch (e) { return [e instanceof HostError, e.code] }`, `[true,"INVALID"]`},
		{`nonsense`, `await roots()`, `failure Thrown: the response of the host cannot be decoded`},
		{`{"responses":[]}`, `await roots()`, `failure Thrown: the response of the host cannot be decoded`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, asker(c.body)), `{}`), host)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.answer, got, c.want)
		}
	}
}

func TestCapabilityError(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		refusal      HostError
		want, detail string
	}{
		{"caught", `try { await sample({ prompt: "p" }) } catch (e) { return [e instanceof CapabilityError, e.message, e.required] }`,
			HostError{Code: Capability, Message: "the client has no model", Details: []byte(`{"requiredCapabilities":{"sampling":{}}}`)},
			`[true,"the client has no model",{"sampling":{}}]`, ``},
		{"uncaught", `await sample({ prompt: "p" })`,
			HostError{Code: Capability, Message: "the client has no model", Details: []byte(`{"requiredCapabilities":{"sampling":{"tools":{}}}}`)},
			`failure CapabilityError: the client has no model`, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`},
		{"without details", `await ask({ a: roots.list() })`, HostError{Code: Capability, Message: "no"}, `failure CapabilityError: no`, `{"requiredCapabilities":{}}`},
		{"with broken details", `await roots()`, HostError{Code: Capability, Message: "no", Details: []byte(`{"requiredCapabilities":[`)}, `failure CapabilityError: no`, `{"requiredCapabilities":{}}`},
		{"another refusal", `try { await roots() } catch (e) { return [e instanceof HostError, e.code] }`, HostError{Code: Denied, Message: "too often"}, `[true,"DENIED"]`, ``},
		{"of another operation", `try { await http.crm.get("u") } catch (e) { return [e instanceof HostError, e.code] }`, HostError{Code: Capability, Message: "x"}, `[true,"CAPABILITY"]`, ``},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return nil, &c.refusal }}
		out := runWith(t, call(compiled(t, asker(c.body)), `{}`), host)
		if shown(out) != c.want || out.Failure != nil && string(out.Failure.Details) != c.detail {
			t.Errorf("%s: got %s %+v, want %s %s", c.name, shown(out), out.Failure, c.want, c.detail)
		}
	}
}
