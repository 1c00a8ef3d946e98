package scripting

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/toml"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/osproc"
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
		if got := shown(runScript(t, "return "+c.expression, `{}`)); got != c.want {
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
		{`toml.print({ a: null })`, `failure Thrown: toml.print: TOML has no null; remove the member`},
		{`toml.print([1])`, `failure Thrown: toml.print: a TOML text is a table: an object is needed`},
		{`toml.print()`, `failure Thrown: toml.print: a TOML text is a table: an object is needed`},
	} {
		if got := shown(runScript(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, got, c.want)
		}
	}
}

// The processor time for a text is proportional to its size.
func TestTOML_linearTime(t *testing.T) {
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
					b.WriteString(strings.ReplaceAll(unit, "NUM", "k"+builtins.Index(int64(i))))
				}
				text = b.String()[:min(b.Len(), toml.MaxText)]
			}
			began := osproc.CPUTime()
			_, _ = toml.Parse(text)
			if took := osproc.CPUTime() - began; took > textBudget(size) {
				t.Errorf("%q × %d took %v", unit, n, took)
				break
			}
		}
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expression, want string }{
		{"rows", `csv.parse("a,b\r\n1,\r\n")`, `[["a","b"],["1",""]]`},
		{"all ends of lines, and empty lines", `csv.parse("\ufeffa\n\nb\rc\r\n\r\nd")`, `[["a"],["b"],["c"],["d"]]`},
		{"quotes", `csv.parse('"a ""b""","c,\nd",""\n"",e"f')`, `[["a \"b\"","c,\nd",""],["","e\"f"]]`},
		{"a header", `csv.parse("id,2,1,__proto__\n7,b,a,p", { header: true })`, `[{"1":"a","2":"b","id":"7","__proto__":"p"}]`},
		{"a separator", `csv.parse("a;b|c→d", { separator: "→" })`, `[["a;b|c","d"]]`},
		{"nothing", `[csv.parse(""), csv.parse("", { header: true }), csv.parse("a,b", { header: true })]`, `[[],[],[]]`},
		{"a quote that is open", `csv.parse('a\n"b\n')`, `failure Thrown: csv.parse: line 2 opens a quote that nothing closes`},
		{"text behind a quote", `csv.parse('"a"b')`, `failure Thrown: csv.parse: line 1 has text after a quoted field; double a quote inside of a field`},
		{"a short row", `csv.parse('a,b\n"1\n2"', { header: true })`, `failure Thrown: csv.parse: line 2 has 1 fields, and the header 2`},
		{"a line behind a field of two", `csv.parse('a,b\n"1\n2",3\n4', { header: true })`, `failure Thrown: csv.parse: line 4 has 1 fields, and the header 2`},
		{"a column twice", `csv.parse("a,a\n1,2", { header: true })`, `failure Thrown: csv.parse: line 1 has two columns of one name; parse it without header`},
		{"too many fields", `csv.parse(",".repeat(1e6))`, `failure Thrown: csv.parse: more than 1,000,000 fields`},
		{"too long a text", `csv.parse("a".repeat(1e3).repeat(17e3))`, `failure Thrown: the text is longer than 16 MiB`},
		{"no text", `csv.parse(1)`, `failure Thrown: csv.parse: the text must be a string`},
		{"no such option", `csv.parse("", { delimiter: ";" })`, `failure Thrown: csv.parse: there is no such option; there is header, separator`},
		{"no separator", `csv.parse("", { separator: "ab" })`, `failure Thrown: csv.parse: separator must be one character, and neither a quote nor the end of a line`},

		{"print rows", `csv.print([["a", 1, null], ["b\"", true, "c,d"], [""]])`, `"a,1,\r\n\"b\"\"\",true,\"c,d\"\r\n\"\"\r\n"`},
		{"print objects", `csv.print([{ id: 1, x: "a" }, { x: "b", id: 2, z: 3 }])`, `"id,x\r\n1,a\r\n2,b\r\n"`},
		{"print some columns", `csv.print([{ id: 1, x: "a" }], { header: ["x", "y"], separator: ";" })`, `"x;y\r\na;\r\n"`},
		{"print no header", `csv.print([{ id: 1 }], { header: false })`, `"1\r\n"`},
		{"print nothing", `csv.print([])`, `""`},
		{"print an object in a row", `csv.print([[1], [{}]])`, `failure Thrown: csv.print: row 2 holds an object; write JSON.stringify(x), or String(x)`},
		{"print no row", `csv.print([[1], 2])`, `failure Thrown: csv.print: row 2 must be an array, or an object like the first`},
		{"print an empty row", `csv.print([[]])`, `failure Thrown: csv.print: row 1 has no fields, which CSV cannot represent`},
		{"print no list", `csv.print({})`, `failure Thrown: csv.print: rows must be an array`},
		{"print too much", `csv.print(Array.from({ length: 20 }, () => ["x".repeat(1e6)]))`, `failure Thrown: the text is longer than 16 MiB`},
	} {
		if got := shown(runScript(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s: got %.300s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzCSV checks that parsed CSV can be printed, and is the same when parsed again.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\"a\"\"\",\r\n", "\ufeff\ufeff,\"\r\"", "\"\n", ",,,\n\n\n,", "a\rb", "\x00,\xff"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, header bool) {
		input, err := json.Marshal(map[string]any{"text": text, "header": header})
		if err != nil {
			t.Fatal(err)
		}
		out := runScript(t, `
			let rows;
			try { rows = csv.parse(input.text, { header: input.header }) } catch (e) { return e.name }
			if (rows.length === 0) return "same";
			const again = csv.parse(csv.print(rows), { header: input.header });
			return JSON.stringify(again) === JSON.stringify(rows) ? "same" : [rows, again]`, string(input))
		if got := shown(out); got != `"same"` && got != `"SyntaxError"` && got != `"RangeError"` {
			t.Errorf("%q: %s", text, got)
		}
	})
}

// long reports whether the machine is otherwise idle, for long tests.
func long() bool { return os.Getenv("MCPD_LONG") != "" }

// textSizes returns the sizes of test texts. The largest takes many times its budget if the time is
// quadratic. The long run goes to the limit.
func textSizes(bound int) []int {
	switch {
	case long():
		return []int{1 << 12, 1 << 16, bound}
	case testing.Short():
		return []int{1 << 12}
	}
	return []int{1 << 12, bound / 8}
}

// textBudget returns a processor time that no text of a size may take: it separates blow-ups from
// noise.
func textBudget(size int) time.Duration {
	budget := max(200*time.Millisecond, 4*time.Second*time.Duration(size)>>20)
	if cputest.Race() {
		budget *= 20
	}
	return budget
}

// The processor time for a text is proportional to its size.
func TestYAML_linearTime(t *testing.T) {
	sizes := textSizes(yaml.MaxText)
	for _, unit := range []string{
		"[", "{", "- ", "a: ", "? ", "[a, ", "{a: ", "#\n", "# a\n- b\n", "&a ", "*a ", "!!str ", "'", "\"", "\\", "|\n ", ">\n\n", "---\n", "...\n", "%YAML 1.2\n",
		"\n", " ", "\t", "- - - - a\n", "a: b\n", "- a\n", "\"a\": ", "[[],", "{},", "a\n ", "a\n\n", "<<: ", "!", "\u2028", "\ufeff",
		"? a\n", ": a\n", "-\n", " -\n  -\n",
	} {
		for _, size := range sizes {
			text := strings.Repeat(unit, size/len(unit))
			began := osproc.CPUTime()
			_, _ = yaml.Parse(text, func() error { return nil })
			if took := osproc.CPUTime() - began; took > textBudget(size) {
				t.Errorf("%q × %d took %v", unit, size/len(unit), took)
				break
			}
		}
	}
}
