package hclfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInteger_schemaLimits(t *testing.T) {
	const least, most = `"minimum":-9007199254740991`, `"maximum":9007199254740991`
	for _, row := range []struct{ input, want string }{
		{`type = integer`, `{"type":"integer",` + least + `,` + most + `}`},
		{"type = integer\nmin = 1\nmax = 9", `{"type":"integer","minimum":1,"maximum":9}`},
		{"type = integer\nmin = 1", `{"type":"integer","minimum":1,` + most + `}`},
		{"type = integer\nmin = -1e300\nmax = 9007199254740992", `{"type":"integer",` + least + `,` + most + `}`},
		{"type = integer\ndefault = 5", `{"type":"integer","default":5,` + least + `,` + most + `}`},
		{`type = list(integer)`, `{"type":"array","items":{"type":"integer",` + least + `,` + most + `}}`},
		{`type = map(integer)`, `{"type":"object","additionalProperties":{"type":"integer",` + least + `,` + most + `}}`},
		{`type = object({ a = optional(integer, 1) })`, `{"type":"object","properties":{"a":{"type":"integer","default":1,` + least + `,` + most + `}},"additionalProperties":false}`},
		{`field "a" { type = integer }`, `{"type":"object","properties":{"a":{"type":"integer",` + least + `,` + most + `}},"required":["a"],"additionalProperties":false}`},
		{`type = bigint`, `{"type":"integer"}`},
		{"type = bigint\nmin = 0\nmax = 340282366920938463463374607431768211457\nenum = [340282366920938463463374607431768211457]",
			`{"type":"integer","enum":[340282366920938463463374607431768211457],"minimum":0,"maximum":340282366920938463463374607431768211457}`},
		{`type = list(bigint)`, `{"type":"array","items":{"type":"integer"}}`},
		{`type = number`, `{"type":"number"}`},
	} {
		tool := decodeTools(t, "x.hcl", "tool \"t\" {\n  input \"i\" {\n"+row.input+"\n}\n  run = \"return 1\"\n}\n", Scope{}).Tools[0]
		if !strings.Contains(string(tool.Input), `"i":`+row.want) {
			t.Errorf("%s: the schema is %s, want %s", row.input, tool.Input, row.want)
		}
	}
	tool := decodeTools(t, "x.hcl", "tool \"t\" {\n  output \"o\" { type = integer }\n  input \"f\" {\n type = integer\n from = \"1\"\n }\n  run = \"return 1\"\n}\n", Scope{}).Tools[0]
	if strings.Contains(string(tool.Output), "minimum") || !strings.Contains(string(tool.From[0].Schema), most) {
		t.Errorf("output %s, from %s", tool.Output, tool.From[0].Schema)
	}
}

func TestBigint_locations(t *testing.T) {
	tool := decodeTools(t, "x.hcl", `
tool "t" {
  input "id" { type = bigint }
  input "ids" { type = list(bigint) }
  input "by" { type = map(list(bigint)) }
  input "o" { type = object({ n = number, b = bigint, rows = list(object({ id = bigint })) }) }
  input "f" {
    field "deep" { type = bigint }
    field "n" { type = integer }
  }
  input "owner" {
    type = bigint
    from = "1"
  }
  output "id" { type = bigint }
  run = "return { id: input.id }"
}
`, Scope{}).Tools[0]
	if diff := cmp.Diff([]string{"/id", "/ids/*", "/by/*/*", "/o/b", "/o/rows/*/id", "/f/deep", "/owner"}, tool.BigInts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/id"}, tool.BigIntOutput); diff != "" {
		t.Error(diff)
	}
	if declared := string(tool.Declared); !strings.HasPrefix(declared, `{"type":"object","properties":{"id":{"type":"bigint"},"ids":{"type":"array","items":{"type":"bigint"}}`) || strings.Contains(declared, "owner") {
		t.Errorf("declared %s", declared)
	}
}

func TestBigint_errors(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"tool \"t\" {\n  input \"i\" { type = bigin }\n  run = \"return 1\"\n}", `there is no type "bigin": did you mean "bigint"?`},
		{"tool \"t\" {\n  input \"i\" {\n    type = bigint\n    header = \"X\"\n  }\n  run = \"return 1\"\n}", "a bigint cannot be sent in a header: use a string, number, integer or bool"},
		{"tool \"t\" {\n  input \"i\" {\n    type = bigint\n    default = 1.5\n  }\n  run = \"return 1\"\n}", "the default must be a bigint, not a fraction: write a whole number, without quotes"},
		{"tool \"t\" {\n  input \"i\" {\n    type = bigint\n    max_length = 5\n  }\n  run = \"return 1\"\n}", `"max_length" does not apply to a bigint: write max`},
		{"tool \"t\" {\n  input \"i\" {\n    type = integer\n    min = 9007199254740992\n  }\n  run = \"return 1\"\n}", "no value is allowed: integers range from -9007199254740991 to 9007199254740991: write type = bigint, or type = string"},
		{"tool \"t\" {\n  input \"i\" {\n    type = integer\n    default = 9007199254740993\n  }\n  run = \"return 1\"\n}", "the value is not between -9007199254740991 and 9007199254740991: write type = bigint, or type = string"},
		{"tool \"t\" {\n  input \"i\" {\n    type = integer\n    enum = [1, -9007199254740993]\n  }\n  run = \"return 1\"\n}", "the value is not between -9007199254740991 and 9007199254740991: write type = bigint, or type = string"},
	} {
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(row.text)}, ToolsKind)
		if file != nil {
			_, more := file.Decode(Scope{})
			problems = append(problems, more...)
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.Summary+": "+p.Detail)
		}
		if diff := cmp.Diff([]string{row.want}, got); diff != "" {
			t.Errorf("%s\n%s", row.text, diff)
		}
	}
}
