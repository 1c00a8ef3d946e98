package scripting

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/cputime"
	"github.com/mcpd/mcpd/internal/base/toml"
)

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

func TestTOML(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`toml.parse("b = 1\na = [true, 'x']\n[t.\"1\"]\nd = 2026-03-29\n__proto__ = 1")`, `{"a":[true,"x"],"b":1,"t":{"1":{"__proto__":1,"d":"2026-03-29"}}}`},
		{`toml.parse("")`, `{}`},
		{`toml.parse("a = secret")`, `failure Thrown: toml.parse: line 1: the text is not TOML`},
		{`(() => { try { toml.parse("a = nan") } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{`toml.parse(null)`, `failure Thrown: toml.parse: the text must be a string`},
		{`toml.print({ name: "web", port: 80, env: { HOME: "/" }, jobs: [{ id: 1 }], at: new Date(0), none: undefined })`,
			`"at = \"1970-01-01T00:00:00.000Z\"\nname = \"web\"\nport = 80\n\n[env]\nHOME = \"/\"\n\n[[jobs]]\nid = 1\n"`},
		{`toml.print({ a: null })`, `failure Thrown: toml.print: TOML has no null; leave the member out`},
		{`toml.print([1])`, `failure Thrown: toml.print: a TOML text is a table: an object is needed`},
		{`toml.print()`, `failure Thrown: toml.print: a TOML text is a table: an object is needed`},
	} {
		if got := shown(runBody(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, got, c.want)
		}
	}
}

// No text costs more processor time than its size explains.
func TestNoTOMLStallsItsReader(t *testing.T) {
	key := strings.Repeat("a.", 15)
	for _, unit := range []string{
		"[", "{", "[[", "a=", "a.", "'", "\"", "\"\"\"", "'''", "\\", "#\n", "\n", "[a]\n", "[[a]]\n", "a=1\n", "[NUM]\n", "[[NUM.a]]\n", "NUM=1\n",
		"NUM={b.c=1}\n", "NUM=[{},[]]\n", "NUM=1979-05-27\n", "[[" + key + "b]]\n", "[" + key + "NUM]\n", key + "NUM=1\n", "[[a]]\n[a.b]\n",
	} {
		for _, size := range textSizes(toml.MaxText) {
			n := size / (len(unit) + 4)
			text := strings.Repeat(unit, n)
			if strings.Contains(unit, "NUM") {
				var b strings.Builder
				for i := range n {
					b.WriteString(strings.ReplaceAll(unit, "NUM", "k"+index(int64(i))))
				}
				text = b.String()[:min(b.Len(), toml.MaxText)]
			}
			began := cputime.Used()
			_, _ = toml.Parse(text)
			if took := cputime.Used() - began; took > textBudget(size) {
				t.Errorf("%q × %d took %v", unit, n, took)
				break
			}
		}
	}
}
