package scripting

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCSV(t *testing.T) {
	for _, c := range []struct{ name, expression, want string }{
		{"rows", `csv.parse("a,b\r\n1,\r\n")`, `[["a","b"],["1",""]]`},
		{"all ends of lines, and empty lines", `csv.parse("\ufeffa\n\nb\rc\r\n\r\nd")`, `[["a"],["b"],["c"],["d"]]`},
		{"quotes", `csv.parse('"a ""b""","c,\nd",""\n"",e"f')`, `[["a \"b\"","c,\nd",""],["","e\"f"]]`},
		{"a header", `csv.parse("id,2,1,__proto__\n7,b,a,p", { header: true })`, `[{"1":"a","2":"b","id":"7","__proto__":"p"}]`},
		{"a separator", `csv.parse("a;b|c→d", { separator: "→" })`, `[["a;b|c","d"]]`},
		{"nothing", `[csv.parse(""), csv.parse("", { header: true }), csv.parse("a,b", { header: true })]`, `[[],[],[]]`},
		{"a quote that is open", `csv.parse('a\n"b\n')`, `failure Thrown: csv.parse: line 2 opens a quote that nothing closes`},
		{"text behind a quote", `csv.parse('"a"b')`, `failure Thrown: csv.parse: line 1 has text behind a field in quotes; a quote in a field is written twice`},
		{"a short row", `csv.parse('a,b\n"1\n2"', { header: true })`, `failure Thrown: csv.parse: line 2 has 1 fields, and the header 2`},
		{"a line behind a field of two", `csv.parse('a,b\n"1\n2",3\n4', { header: true })`, `failure Thrown: csv.parse: line 4 has 1 fields, and the header 2`},
		{"a column twice", `csv.parse("a,a\n1,2", { header: true })`, `failure Thrown: csv.parse: line 1 has two columns of one name; parse it without header`},
		{"too many fields", `csv.parse(",".repeat(1e6))`, `failure Thrown: csv.parse: more than 1,000,000 fields`},
		{"too long a text", `csv.parse("a".repeat(17e6))`, `failure Thrown: the text is longer than 16 MiB`},
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
		{"print an empty row", `csv.print([[]])`, `failure Thrown: csv.print: row 1 has no fields, which CSV cannot tell from no row`},
		{"print no list", `csv.print({})`, `failure Thrown: csv.print: rows must be an array`},
		{"print too much", `csv.print(Array.from({ length: 20 }, () => ["x".repeat(1e6)]))`, `failure Thrown: the text is longer than 16 MiB`},
	} {
		if got := shown(runBody(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s: got %.300s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzCSV holds that what is parsed can be printed, and is the same when it is
// parsed again.
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
		out := runBody(t, `
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

// Whatever the text, its fields are read once.
func TestCSVIsReadOnce(t *testing.T) {
	for _, text := range []string{"\"", "\"\"", ",", "\n", "\r", "a", "\"a\"\"b\",\n"} {
		reader := newCSVReader(strings.Repeat(text, 1<<20/len(text)), ",")
		before := reader.at
		for reader.more() {
			if _, _, err := reader.field(); err != nil {
				break
			}
			if reader.at < before {
				t.Fatalf("%q: from %d back to %d", text, before, reader.at)
			}
			before = reader.at
		}
	}
}
