package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofKind returns the source of a script of a kind.
func ofKind(kind Kind, body string) Source {
	src := tool(body)
	src.Kind = kind
	return src
}

func TestKinds_globals(t *testing.T) {
	for _, c := range []struct {
		name        string
		kind        Kind
		input, body string
		want        string
	}{
		{"a resource", Resource, `{"uri":"crm://a/1","params":{"id":"1"}}`,
			`return [uri, params.id, agent.agent_id, call.via, content.text("x").type]`, `["crm://a/1","1","a","test","text"]`},
		{"the parameters of a resource", Resource, `{"uri":"u","params":{"id":"1","n":{}}}`,
			`try { params.id = 2 } catch (e) { return [e.name, Object.isFrozen(params.n)] }`, `["TypeError",true]`},
		{"a resource by computed names", Resource, `{"uri":"u","params":{"id":"1"}}`,
			`return ["uri", "par" + "ams", "input"].map(n => typeof globalThis[n]).concat(globalThis.params === params)`, `["string","object","undefined",true]`},
		{"a resource without parameters", Resource, `{"uri":"u"}`, `return [uri, typeof params]`, `["u","undefined"]`},
		{"a prompt", Prompt, `{"id":"7"}`, `input.id += "8"; return [{ role: "user", content: content.text(input.id) }]`,
			`[{"role":"user","content":{"type":"text","text":"78"}}]`},
		{"a completion", Complete, `{"value":"C-1","params":{"team":"a"}}`, `return ["C-10", "D-1"].filter(x => x.startsWith(value)).concat(params.team)`, `["C-10","a"]`},
		{"a completion that is given nonsense", Complete, `1`, `return value`, `failure Thrown: the arguments cannot be read: the input of the call is not an object`},
	} {
		got := shown(runWith(t, call(compiled(t, ofKind(c.kind, c.body)), c.input), &fakeHost{}))
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestKinds_missingGlobals(t *testing.T) {
	for _, c := range []struct {
		name, body string
		kind       Kind
		inputs     []string
		want       []string // position, summary, and advice
	}{
		{"input in a resource", "return input.id", Resource, nil, []string{
			`tools.d/t.hcl:5:8 "input": error: input is not defined`, `a resource has uri, and the variables of its template as params`}},
		{"input in a completion", "return input.id", Complete, nil, []string{
			`tools.d/t.hcl:5:8 "input": error: input is not defined`, `a completion has value, and the arguments that are filled in already as params`}},
		{"params in a tool", "return params.id", Tool, nil, []string{
			`tools.d/t.hcl:5:8 "params": error: params is not defined`, `only resources and completions have params; the input of this script is input`}},
		{"uri in a completion", "return uri", Complete, nil, []string{
			`tools.d/t.hcl:5:8 "uri": error: uri is not defined`, `only resources have a uri; the input of this script is params`}},
		{"event in a prompt", "return event.id", Prompt, nil, []string{
			`tools.d/t.hcl:5:8 "event": error: event is not defined`, `only hooks have an event; the input of this script is input`}},
		{"a parameter", "return params.idd", Resource, []string{"id", "name"}, []string{
			`tools.d/t.hcl:5:15 "idd": error: there is no parameter "idd"`, `did you mean "id"? parameters are the {variables} of the uri_template: id, name`}},
		{"an argument of a prompt", "return input.nam", Prompt, []string{"id", "name"}, []string{
			`tools.d/t.hcl:5:14 "nam": error: there is no argument "nam"`, `did you mean "name"? declare it with an argument block`}},
		{"what a completion is filled in with", "return params.x", Complete, []string{"id"}, []string{
			`tools.d/t.hcl:5:15 "x": error: there is no parameter "x"`, `parameters are the variables of the template, or the arguments of the prompt: id`}},
		{"content in a completion", "return content.text('a')", Complete, nil, []string{
			`tools.d/t.hcl:5:8 "content": error: content is not defined`, `declare it`}},
		{"what a resource has", "return [uri, params.id, agent.model, call.id, content.text('x'), progress(1)]", Resource, []string{"id"}, nil},
	} {
		src := ofKind(c.kind, c.body)
		src.Inputs = c.inputs
		_, list := Compile(src)
		got := formatDiagnostics(src, list)
		if len(list) == 1 {
			got = append(got, list[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestKinds_differentHash(t *testing.T) {
	seen := map[[32]byte]Kind{}
	for _, kind := range allKinds() {
		p := compiled(t, ofKind(kind, `return 1`))
		if other, ok := seen[p.Hash()]; ok {
			t.Errorf("kinds %v and %v have one hash", kind, other)
		}
		seen[p.Hash()] = kind
	}
	out, err := Inline().Run(context.Background(), Call{Program: compiled(t, ofKind(Complete, `return params`))}, &fakeHost{})
	if err != nil || out.Failure != nil || out.Result.Kind != Nothing {
		t.Errorf("a completion that is given nothing: %v %+v", err, out)
	}
}

func allKinds() []Kind { return []Kind{Tool, Hook, Resource, Prompt, Complete} }
