package scripting

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

func TestInputRequest_errors(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`elicit()`, `elicit: an object is needed, with message, schema, url and elicitationId`},
		{`elicit("k")`, `elicit: a string is the key of a question; the question itself is missing: write elicit({ message, schema })`},
		{`elicit(["a"])`, `elicit: an object is needed, with message, schema, url and elicitationId`},
		{`elicit({ message: "m" })`, `elicit: schema or url is missing`},
		{`elicit({ schema: {} })`, `elicit: message is missing`},
		{`elicit({ message: "", schema: {} })`, `elicit: message must be a string that is not empty`},
		{`elicit({ message: "m", requestedSchema: {} })`, `elicit: there is no member requestedSchema; write schema`},
		{`elicit({ mesage: "m" })`, `elicit: there is no member mesage; did you mean "message"?`},
		{`elicit({ message: "m", title: "t" })`, `elicit: there is no member title; there is message, schema, url and elicitationId`},
		{`elicit({ message: "m", schema: {}, url: "https://a" })`, `elicit: a form has a schema and a page a url; there cannot be both`},
		{`elicit({ message: "m", schema: {}, elicitationId: "1" })`, `elicit: an elicitationId belongs to a url`},
		{`elicit({ message: "m", url: "/a" })`, `elicit: url must be an absolute http or https URL`},
		{`elicit({ message: "m", url: "javascript:alert(1)" })`, `elicit: url must be an absolute http or https URL`},
		{`elicit({ message: "m", url: {} })`, `elicit: url must be an absolute http or https URL`},
		{`elicit({ message: "m", schema: { type: "string" } })`, `elicit: schema must have the type "object"`},
		{`elicit({ message: "m", schema: { type: "object" } })`, `elicit: schema must have properties, each of which is a schema`},
		{`elicit({ message: "m", schema: { type: "object", properties: { a: 1 } } })`, `elicit: schema must have properties, each of which is a schema`},
		{`elicit({ message: "m", schema: { type: "object", properties: { b: {}, a: { type: "object" } } } })`,
			`elicit: schema: a form has no nested members; a must be of the type string, number, integer, boolean or array`},
		{`const schema = { type: "object", properties: {} }; schema.self = schema; elicit({ message: "m", schema })`, `elicit: requestedSchema: the value contains itself, which JSON cannot hold`},
		{`elicit({ message: "m", schema: { toJSON() {} } })`, `elicit: requestedSchema cannot be written as JSON`},
		{`elicit.form({ message: "m" })`, `elicit.form: schema is missing`},
		{`elicit.form({ message: "m", url: "https://a" })`, `elicit.form: there is no member url; there is message and schema`},
		{`elicit.url({ message: "m" })`, `elicit.url: url is missing`},
		{`sample({})`, `sample: prompt or messages is missing`},
		{`sample("What is it?")`, `sample: a string is the key of a question; the question itself is missing: write sample({ prompt })`},
		{`sample("what is it", { prompt: "a" })`, `sample: a key must be 1 to 64 letters, digits, _, . and -`},
		{`sample({ prompt: "a", messages: [{}] })`, `sample: a prompt is the only message; there cannot be messages too`},
		{`sample({ messages: [] })`, `sample: messages must be an array that is not empty`},
		{`sample({ messages: ["a"] })`, `sample: messages[0]: an object is needed, with role and content`},
		{`sample({ messages: [{ role: "user", content: "a" }, { role: "system", content: "a" }] })`, `sample: messages[1]: role must be "user" or "assistant"`},
		{`sample({ messages: [{ role: "user" }] })`, `sample: messages[0]: content is missing`},
		{`sample({ messages: [{ role: "user", content: 5 }] })`, `sample: messages[0]: content must be text, a block, or an array of blocks`},
		{`sample({ messages: Array(1001).fill({ role: "user", content: "a" }) })`, `sample: there are more than 1000 messages`},
		{`sample({ prompt: "a", maxTokens: 1.5 })`, `sample: maxTokens must be a whole number of at least 1`},
		{`sample({ prompt: "a", max_tokens: 5 })`, `sample: there is no member max_tokens; did you mean "maxTokens"?`},
		{`sample({ prompt: "a", stopSequences: [1] })`, `sample: stopSequences must be an array of strings`},
		{`sample({ prompt: "a", includeContext: "all" })`, `sample: includeContext must be "none", "thisServer" or "allServers"`},
		{`sample({ prompt: "a", temperature: "hot" })`, `sample: temperature must be a number`},
		{`sample({ prompt: "a", intelligenceLevel: 0.5 })`, `sample: there is no member intelligenceLevel; write modelPreferences.intelligencePriority`},
		{`sample({ prompt: "a", costLevel: 0.5 })`, `sample: there is no member costLevel; write modelPreferences.costPriority`},
		{`sample({ prompt: "a", modelPreferences: { intelligenceLevel: 2 } })`, `sample: modelPreferences: intelligencePriority must be a number from 0 to 1`},
		{`sample({ prompt: "a", modelPreferences: { costLevel: 0.5, costPriority: 0.5 } })`, `sample: modelPreferences: costPriority is given twice, by two names of it`},
		{`sample({ prompt: "a", modelPreferences: { speedLevel: 0.5 } })`, `sample: modelPreferences: there is no member speedLevel; write modelPreferences.speedPriority`},
		{`sample({ prompt: "a", modelPreferences: { speedPriority: 2 } })`, `sample: modelPreferences: speedPriority must be a number from 0 to 1`},
		{`sample.message({ prompts: "a" })`, `sample.message: there is no member prompts; did you mean "prompt"?`},
		{`roots({})`, `roots(key): key must be a string`},
		{`ask()`, `ask({ key: request, … }): an object is needed`},
		{`ask({})`, `ask({ key: request, … }): there is no request`},
		{`ask({ a: { message: "m" } })`, `ask: a must be made by elicit.form, elicit.url, sample.message or roots.list`},
		{`ask({ a: 1 })`, `ask: a must be made by elicit.form, elicit.url, sample.message or roots.list`},
		{`ask({ "a b": roots.list() })`, `ask: a key must be 1 to 64 letters, digits, _, . and -`},
		{`ask(Object.fromEntries(Array.from({ length: 33 }, (_, i) => ["k" + i, roots.list()])))`, `ask: there are more than 32 requests`},
		{`elicit("", ` + form + `)`, `elicit: a key must be 1 to 64 letters, digits, _, . and -`},
		{`elicit("k".repeat(65), ` + form + `)`, `elicit: a key must be 1 to 64 letters, digits, _, . and -`},
		{`elicit("k", ` + form + `); roots("k")`, `roots: k is already requested and has no response yet; use a unique key for each request`},
		{`roots("k"); ask({ a: roots.list(), k: roots.list() })`, `ask: k is already requested and has no response yet; use a unique key for each request`},
		{`sample({ prompt: "x".repeat(1 << 20) })`, `sample: text: the value is larger than 1048576 bytes of JSON`},
		{`const half = sample.message({ prompt: "x".repeat(600000) }); ask({ a: half, b: half })`, `ask: the requests have more than 1048576 bytes of JSON together`},
		{`let d = {}; for (let i = 0; i < 40; i++) d = { d }; sample({ prompt: "p", metadata: d })`, `sample: metadata: the value is nested deeper than 32`},
	} {
		out := runWith(t, call(compiled(t, asker("try { "+c.body+" } catch (e) { return [e.name, e.message] }")), `{}`), askingHost(t, willing))
		if diff := cmp.Diff(`["TypeError",`+string(mustJSONText(c.want))+`]`, shown(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}

// mustJSONText quotes text like JSON.stringify.
func mustJSONText(text string) []byte {
	e := jsvalue.NewEncoder(1<<20, 1, func() bool { return false })
	e.Quote(text)
	return e.Out
}

func TestInputRequest_errorSendsNothing(t *testing.T) {
	host := askingHost(t, willing)
	body := `try { elicit({}) } catch {} try { ask({ a: roots.list(), b: 1 }) } catch {} try { roots("a b") } catch {} return (await roots()).length`
	if out := runWith(t, call(compiled(t, asker(body)), `{}`), host); shown(out) != "1" || len(host.calls()) != 1 {
		t.Errorf("got %s after %q", shown(out), host.calls())
	}
}

func TestInputRequest_defaultKeys(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"one after another", `await roots(); await roots(); await sample({ prompt: "p" }); await roots()`, "roots roots_2 sample roots_3"},
		{"several at once", `await Promise.all([roots(), roots(undefined), roots(null)])`, "roots roots_2 roots_3"},
		{"a number that is taken", `roots("roots_2"); roots(); roots()`, "roots_2 roots roots_3"},
		{"a key again, once it is answered", `await roots("a"); await roots("a"); await elicit("a", ` + form + `)`, "a a a"},
		{"a key again, once it is refused", `await roots("refused").catch(() => {}); await roots("refused").catch(() => {})`, "refused refused"},
		{"a key after a mistake", `try { roots("a b") } catch {} await roots()`, "roots"},
	} {
		host := askingHost(t, func(q question) string {
			if q.Key == "refused" {
				return `{}`
			}
			return willing(q)
		})
		out := runWith(t, call(compiled(t, asker(c.body)), `{}`), host)
		var keys []string
		for _, asked := range host.calls() {
			for _, q := range questions(t, []byte(strings.TrimPrefix(asked, "ask "))) {
				keys = append(keys, q.Key)
			}
		}
		if out.Failure != nil {
			t.Errorf("%s: %s", c.name, shown(out))
		}
		want := strings.Fields(c.want)
		slices.Sort(want) // concurrent calls reach the host in any order
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != strings.Join(want, " ") {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestElicitURL_defaultID(t *testing.T) {
	body := `await elicit({ message: "m", url: "https://a" }); return crypto.randomUUID()`
	var first []string
	for range 2 {
		host := askingHost(t, willing)
		out := runWith(t, call(compiled(t, asker(body)), `{}`), host)
		seen := append(host.calls(), shown(out))
		_, id, _ := strings.Cut(seen[0], `"elicitationId":"`)
		if id, _, _ = strings.Cut(id, `"`); len(id) != 36 || strings.Contains(seen[1], id) {
			t.Errorf("got the id %q and %s", id, seen[1])
		}
		if diff := cmp.Diff(first, seen); first != nil && diff != "" {
			t.Errorf("the id differs in the replay (-first +second):\n%s", diff)
		}
		first = seen
	}
}

func TestInputRequest_missingAwait(t *testing.T) {
	for body, want := range map[string]string{
		`return elicit({}).content`:                `did you forget await? write (await elicit(…)).content`,
		`return roots().length`:                    `did you forget await? write (await roots(…)).length`,
		`return roots().then(r => r.length)`:       ``,
		`return ask({ a: roots.list() }).toJSON`:   ``,
		`return elicit.form({}).x`:                 ``,
		`const ask = () => ({}); return ask().x`:   ``,
		`return (await sample({})).content.length`: ``,
	} {
		_, list := Compile(asker(body))
		got := ""
		if len(list) == 1 {
			got = list[0].Detail
		}
		if got != want || len(list) > 1 {
			t.Errorf("%s: got %v, want %q", body, list, want)
		}
	}
}

func TestInputRequest_notGranted(t *testing.T) {
	for _, c := range []struct {
		body    string
		objects []Object
		want    []string
	}{
		{`await elicit({})`, nil, []string{`tools.d/t.hcl:5:7 "elicit": error: elicit is not defined`, `grant it: allow { ask { elicit = true } }`}},
		{`await roots()`, []Object{{Kind: "ask", Name: "elicit"}}, []string{`tools.d/t.hcl:5:7 "roots": error: roots is not defined`, `grant it: allow { ask { roots = true } }`}},
		{`await ask({})`, []Object{{Kind: "http", Name: "ask"}}, []string{`tools.d/t.hcl:5:7 "ask": error: ask is not defined`, `grant the input request: allow { ask { elicit = true } } makes elicit and ask`}},
		{`return typeof sample`, nil, nil},
		{`const roots = [1]; return roots`, nil, nil},
	} {
		src := tool(c.body)
		src.Objects = c.objects
		_, list := Compile(src)
		got := formatDiagnostics(src, list)
		if len(list) == 1 {
			got = append(got, list[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
	src := tool(`return ["elicit", "sample", "roots", "ask", "AskDenied"].map(n => typeof globalThis[n])`)
	src.Objects = []Object{{Kind: "ask", Name: "sample"}}
	if got := shown(runWith(t, call(compiled(t, src), `{}`), &fakeHost{})); got != `["undefined","function","undefined","undefined","function"]` {
		t.Errorf("globals accessed by computed names: %s", got)
	}
}

// TestSample_toolResults: messages with tools must be complete, or the script gets an error.
func TestSample_toolResults(t *testing.T) {
	const (
		ask     = `{ role: "user", content: "a" }`
		use     = `{ role: "assistant", content: [{ type: "text", text: "b" }, { type: "tool_use", id: "1", name: "t", input: {} }, { type: "tool_use", id: "2", name: "t", input: {} }] }`
		results = `{ role: "user", content: [{ type: "tool_result", toolUseId: "2", content: [] }, { type: "tool_result", toolUseId: "1", content: [] }] }`
		one     = `{ role: "assistant", content: { type: "tool_use", id: "1", name: "t", input: {} } }`
		result  = `{ role: "user", content: { type: "tool_result", toolUseId: "1", content: [] } }`
	)
	for _, c := range []struct{ messages, want string }{
		{ask, ""},
		{ask + "," + use + "," + results, ""},
		{ask + "," + one + "," + result + "," + one + "," + result, ""},
		{`{ role: "user", content: "\"tool_use\"" }`, ""},
		{one, "messages: the last tool_use needs its tool_result in a message after it"},
		{one + "," + ask, "messages[1]: each tool_use in the message before needs its tool_result here"},
		{use + "," + result, "messages[1]: each tool_use in the message before needs its tool_result here"},
		{ask + "," + result, "messages[1]: each tool_result needs the toolUseId of a tool_use in the message before, once"},
		{one + "," + results, "messages[1]: each tool_result needs the toolUseId of a tool_use in the message before, once"},
		{one + `,{ role: "user", content: [{ type: "tool_result", toolUseId: "1", content: [] }, { type: "text", text: "b" }] }`, "messages[1]: a message with a tool_result has the role user and no other content"},
		{one + "," + strings.Replace(result, "user", "assistant", 1), "messages[1]: a message with a tool_result has the role user and no other content"},
		{strings.Replace(one, "assistant", "user", 1) + "," + result, "messages[0]: a message with a tool_use has the role assistant"},
		{strings.Replace(use, `"2"`, `"1"`, 1) + "," + result, "messages[0]: each tool_use needs a unique id"},
		{strings.Replace(one, `"1"`, `1`, 1) + "," + result, "messages: the id of a tool_use and the toolUseId of a tool_result must be strings"},
	} {
		body := `try { await sample({ messages: [` + c.messages + `], tools: [{ name: "t", inputSchema: { type: "object" } }] }); return "" } catch (e) { return e.message }`
		want := c.want
		if want != "" {
			want = "sample: " + want
		}
		if got := shown(runWith(t, call(compiled(t, asker(body)), `{}`), askingHost(t, willing))); got != string(mustJSONText(want)) {
			t.Errorf("%s: %s, want %s", c.messages, got, want)
		}
	}
}
