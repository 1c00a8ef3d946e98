package scripting

import "testing"

func TestYAML(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`yaml.parse("a: &x [1, 0x10, yes, ~]\nb: {c: *x, 2: z, 1: y}\n__proto__: p")`, `{"a":[1,16,"yes",null],"b":{"1":"y","2":"z","c":[1,16,"yes",null]},"__proto__":"p"}`},
		{`[yaml.parse(""), yaml.parse("a"), yaml.parse("a\n---\nb", { all: true }), yaml.parse("", { all: true })]`, `[null,"a",["a","b"],[]]`},
		{`yaml.parse("a\n---\nb")`, `failure Thrown: yaml.parse: the text has more than one document; { all: true } gives a list of them`},
		{`yaml.parse("a: [secret")`, `failure Thrown: yaml.parse: line 1: the text is not YAML`},
		{`(() => { try { yaml.parse("a: .inf") } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{`yaml.parse("a".repeat(2e6))`, `failure Thrown: yaml.parse: the text is longer than 1 MiB`},
		{`yaml.parse({})`, `failure Thrown: yaml.parse: the text must be a string`},
		{`yaml.parse("", { strict: true })`, `failure Thrown: yaml.parse: there is no such option; there is all`},
		{`yaml.print({ name: "web", ports: [80, 443], note: "two\nlines\n", at: new Date(0), none: undefined })`, `"name: web\nports:\n- 80\n- 443\nnote: |\n  two\n  lines\nat: \"1970-01-01T00:00:00.000Z\"\n"`},
		{`yaml.print()`, `failure Thrown: yaml.print: there is nothing to print`},
		{`(() => { const o = {}; o.o = o; return yaml.print(o) })()`, `failure Thrown: the value contains itself, which JSON cannot hold`},
	} {
		if got := shown(runBody(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, got, c.want)
		}
	}
}
