package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// calling returns the source of a tool that may call tools.
func calling(body string, granted ...string) Source {
	src := tool(body)
	for _, name := range granted {
		src.Objects = append(src.Objects, Object{Kind: "tools", Name: name})
	}
	return src
}

func TestTools_payload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`tools.get({ id: "ä<&>", n: [1, null], gone: undefined })`, `call {"tool":"get","arguments":{"id":"ä\u003c\u0026\u003e","n":[1,null]}}`},
		{`tools.get()`, `call {"tool":"get"}`},
		{`tools.get(undefined, 2)`, `call {"tool":"get"}`},
		{`tools["get-all.of_it"]({})`, `call {"tool":"get-all.of_it","arguments":{}}`},
		{`tools.crm_list()`, `call {"tool":"crm_list"}`},
		{`tools["crm_" + "list"]()`, `call {"tool":"crm_list"}`},
		{`(() => { const { crm_list } = tools; return crm_list(); })()`, `call {"tool":"crm_list"}`},
		{`[{}].map(tools.get)[0]`, `call {"tool":"get","arguments":{}}`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`{}`), nil }}
		out := runWith(t, call(compiled(t, calling("await "+c.body, "get", "get-all.of_it", "crm_*")), `{}`), host)
		if diff := cmp.Diff([]string{c.want}, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestTools_result(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"a":[1,"ä",null],"__proto__":{"b":1}}`, `{"a":[1,"ä",null],"__proto__":{"b":1}}`},
		{`"text"`, `"text"`},
		{`null`, `null`},
		{`[{"type":"text","text":"a"}]`, `[{"type":"text","text":"a"}]`},
		{`no JSON`, `failure Thrown: the response of the host cannot be decoded`},
		{``, `failure Thrown: the response of the host cannot be decoded`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, calling("return await tools.get()", "get")), `{}`), host)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.answer, got, c.want)
		}
	}
}

func TestTools_error(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: "POLICY_DENIED", Message: "not today"}
	}}
	const body = "try { await tools.get() } catch (e) { return [e instanceof HostError, e.name, e.code, e.message] }"
	if got := shown(runWith(t, call(compiled(t, calling(body, "get")), `{}`), host)); got != `[true,"HostError","POLICY_DENIED","not today"]` {
		t.Errorf("got %s", got)
	}
	if got := shown(runWith(t, call(compiled(t, calling("return tools.get()", "get")), `{}`), host)); got != "failure Thrown: not today" {
		t.Errorf("uncaught: %s", got)
	}
}

func TestTools_notGranted(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`Object.keys(tools)`, `["get","then"]`},
		{`Object.getOwnPropertyNames(tools)`, `["get","then"]`},
		{`Object.getOwnPropertyNames(Object.getPrototypeOf(tools)).concat(Object.getPrototypeOf(Object.getPrototypeOf(tools)) ?? [])`, `[]`},
		{`["get", "gets", "crm_list", "crm", "toString", "constructor", "__proto__", "valueOf", "toJSON", "hasOwnProperty", ""].filter((n) => n in tools)`, `["get","crm_list"]`},
		{`["get", "gets", "crm_list", "toString", "constructor", "__proto__"].map((n) => typeof tools[n])`, `["function","undefined","function","undefined","undefined","undefined"]`},
		{`[Symbol.iterator, Symbol.toStringTag].map((s) => typeof tools[s])`, `["undefined","undefined"]`},
		{`tools.get === tools["get"] && tools.crm_a === tools.crm_a && tools.crm_a.name`, `"crm_a"`},
		{`(() => { try { tools.mine = 1 } catch (e) { return e.name } })()`, `"TypeError"`},
		{`(() => { try { tools.get = 1 } catch (e) { return e.name } })()`, `"TypeError"`},
		{`(() => { try { delete tools.get } catch (e) { return e.name } })()`, `"TypeError"`},
		{`(() => { try { return "" + tools } catch (e) { return e.name } })()`, `"TypeError"`},
		{`JSON.stringify(tools)`, `"{}"`},
		{`Reflect.ownKeys(tools).length`, `2`},
	} {
		src := calling("return "+c.expression, "get", "then", "crm_*")
		if got := shown(runWith(t, call(compiled(t, src), `{}`), &fakeHost{})); got != c.want {
			t.Errorf("%s: got %s, want %s", c.expression, got, c.want)
		}
	}
}

func TestTools_implicitNames(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`1`), nil }}
	for _, c := range []struct{ body, want string }{
		{`const t = await tools; return typeof t.get`, `"function"`},
		{`return tools`, `{}`},
		{`return { tools }`, `{"tools":{}}`},
		{"try { return `${tools}` } catch (e) { return e.name }", `"TypeError"`},
		{`return [tools == 1, tools + ""]`, `failure Thrown: tools cannot be converted to text; write tools.NAME(args)`},
	} {
		got := shown(runWith(t, call(compiled(t, calling(c.body, "*")), `{}`), host))
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.body, got, c.want)
		}
	}
	if calls := host.calls(); len(calls) > 0 {
		t.Errorf("called %q", calls)
	}
}

func TestTools_diagnostics(t *testing.T) {
	for _, c := range []struct {
		body    string
		granted []string
		want    []string
	}{
		{`return tools.crm_get()`, []string{"crm_*"}, nil},
		{`return tools.crm_gte()`, []string{"crm_get", "a*"}, []string{`tools.d/t.hcl:5:14 "crm_gte": error: tools.crm_gte is not granted`, `did you mean "crm_get"? granted is crm_get, a*; add "crm_gte" to the tools of the call block`}},
		{`return tools["b-c"]()`, []string{"a*"}, []string{`tools.d/t.hcl:5:14 "\"b-c\"": error: tools.b-c is not granted`, `granted is a*; add "b-c" to the tools of the call block`}},
		{`return tools.get()`, nil, []string{`tools.d/t.hcl:5:8 "tools": error: tools is not defined`, `grant it: allow { call { tools = ["name"] } } makes tools.name`}},
		{`const c = tools.get(); return c.id`, []string{"get"}, []string{`tools.d/t.hcl:5:33 "id": warning: a promise has no member "id"`, `did you forget await? write c = await tools.NAME(args)`}},
	} {
		_, problems := Compile(calling(c.body, c.granted...))
		got := formatDiagnostics(calling(c.body, c.granted...), problems)
		if len(problems) == 1 {
			got = append(got, problems[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestProgram_reaches(t *testing.T) {
	for _, c := range []struct {
		body, pattern string
		reached       bool
	}{
		{`return tools.crm_get()`, "crm_get", true}, {`return tools.crm_get()`, "crm_*", true}, {`return tools.crm_get()`, "erp_*", false},
		{`return tools[input.name]()`, "erp_*", true}, {`return 1`, "*", false},
	} {
		p := compiled(t, calling(c.body, c.pattern, "crm_get"))
		if got := p.Reaches(Object{Kind: "tools", Name: c.pattern}); got != c.reached {
			t.Errorf("%s and %s: %v, want %v", c.body, c.pattern, got, c.reached)
		}
	}
}
