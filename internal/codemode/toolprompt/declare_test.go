package toolprompt

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting"
)

func TestDeclare_types(t *testing.T) {
	for _, r := range []struct{ schema, want string }{
		{`true`, `unknown`},
		{`false`, `never`},
		{`{}`, `unknown`},
		{`{"type":"string"}`, `string`},
		{`{"type":"integer"}`, `number`},
		{`{"type":"bigint"}`, `number | bigint`},
		{`{"type":"array","items":{"type":"bigint"}}`, `(number | bigint)[]`},
		{`{"type":["string","null"]}`, `string | null`},
		{`{"type":["integer","number"]}`, `number`},
		{`{"type":"string","nullable":true}`, `string | null`},
		{`{"const":"a"}`, `"a"`},
		{`{"enum":["a",1,null,true]}`, `"a" | 1 | null | true`},
		{`{"type":"array"}`, `unknown[]`},
		{`{"items":{"type":"string"}}`, `string[]`},
		{`{"type":"array","items":{"enum":["a","b"]}}`, `("a" | "b")[]`},
		{`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]}`, `[string, number, ...unknown[]]`},
		{`{"type":"array","prefixItems":[{"type":"string"},{"type":["number","null"]}],"items":false,"minItems":1}`, `[string, (number | null)?]`},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"number"}}`, `[string, ...number[]]`},
		{`{"type":"array","prefixItems":[{"type":"string"}],"maxItems":1}`, `[string]`},
		{`{"type":"object"}`, `{ [name: string]: unknown }`},
		{`{"type":"object","properties":{}}`, `{}`},
		{`{"type":"object","additionalProperties":false}`, `{}`},
		{`{"type":"object","additionalProperties":{"type":"number"}}`, `{ [name: string]: number }`},
		{`{"type":"object","patternProperties":{"^x":{"type":"number"}},"additionalProperties":false}`, `{ [name: string]: number }`},
		{`{"properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["a"]}`, `{ b?: string; a: number }`},
		{`{"properties":{"a":{"type":"number"}},"additionalProperties":{"type":"string"}}`, `{ a?: number } & { [name: string]: string }`},
		{`{"properties":{"a":{"type":"number"}},"additionalProperties":false}`, `{ a?: number }`},
		{`{"properties":{"a-b":true,"a":false}}`, `{ "a-b"?: unknown; a?: never }`},
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, `string | string[]`},
		{`{"oneOf":[{"type":"string"},true]}`, `unknown`},
		{`{"allOf":[{"properties":{"a":true}},{"properties":{"b":true}},{}]}`, `{ a?: unknown } & { b?: unknown }`},
		{`{"allOf":[{"anyOf":[{"type":"string"},{"type":"number"}]},{"type":["string","null"]}]}`, `(string | number) & (string | null)`},
		{`{"properties":{"a":true},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{ a?: unknown } & ({ a: unknown } | { b: unknown })`},
		{`{"$ref":"https://example.com/a.json"}`, `unknown`},
		{`{"$ref":"#"}`, `unknown`},
		{`{"properties":{"a":true,"a":{"type":"string"}}}`, `{ a?: string }`},
		{`{"type":"object","if":{},"then":{},"x-anything":[1],"properties":{"a":{"unheard":"of"}}}`, `{ a?: unknown }`},
	} {
		p := newPrinter("t", Full, typeNames{}, promptLimits())
		if got, _ := p.root([]byte(r.schema), 0); got != r.want || p.types.Len() > 0 {
			t.Errorf("%s\n is %s\nwant %s", r.schema, got, r.want)
		}
	}
}

// TestDeclare_deepNesting pins the printed depth of types.
func TestDeclare_deepNesting(t *testing.T) {
	for n, want := range map[int]string{
		maxDepth:     "string" + strings.Repeat("[]", maxDepth),
		maxDepth + 1: "unknown" + strings.Repeat("[]", maxDepth+1),
	} {
		p := newPrinter("t", Full, typeNames{}, promptLimits())
		if got, _ := p.root(deep(`{"items":`, `{"type":"string"}`, `}`, n), 0); got != want {
			t.Errorf("%d nested lists: %s", n, got)
		}
	}
}

func TestDeclare_references(t *testing.T) {
	for _, r := range []struct{ schema, want string }{
		{`{"$defs":{"node":{"properties":{"next":{"$ref":"#/$defs/node"}}}},"$ref":"#/$defs/node"}`,
			"type AToolNode = { next?: AToolNode };\nAToolNode"},
		{`{"definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"},"y":{"$ref":"#/definitions/a"}}}`,
			"type AToolA = string;\n{ x?: AToolA; y?: AToolA }"},
		{`{"title":"Tree","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`,
			"type AToolTree = { left?: AToolTree; right?: AToolTree };\nAToolTree"},
		{`{"$id":"https://example.com/s","$defs":{"a":{"$anchor":"here","type":"number"}},"items":{"$ref":"https://example.com/s#here"}}`,
			"type AToolHere = number;\nAToolHere[]"},
		{`{"$defs":{"a/b~c":{"type":"number"},"A B C":{"type":"string"}},"prefixItems":[{"$ref":"#/$defs/a~1b~0c"},{"$ref":"#/$defs/A%20B%20C"}],"items":false}`,
			"type AToolA1b0c = number;\ntype AToolA20B20C = string;\n[AToolA1b0c, AToolA20B20C]"},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"items":{"$ref":"#/$defs/a"}}`,
			"type AToolA = unknown;\nAToolA[]"},
		{`{"$defs":{"a":{"type":"object","properties":{"x":true}}},"items":{"$ref":"#/$defs/a","required":["x"]}}`,
			"type AToolA = { x?: unknown };\n(AToolA & { x: unknown })[]"},
	} {
		p := newPrinter("a_tool", Full, typeNames{}, promptLimits())
		got, _ := p.root([]byte(r.schema), 0)
		if diff := cmp.Diff(r.want, p.types.String()+got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.schema, diff)
		}
	}
}

func TestDeclare_constraints(t *testing.T) {
	for _, r := range []struct{ schema, want string }{
		{`{"type":"string"}`, ``},
		{`{"description":"A\n name."}`, "/**\n * A\n * name.\n */\n"},
		{`{"title":"Name"}`, ``},
		{`{"title":"What people call it"}`, "/** What people call it */\n"},
		{`{"type":"integer","minimum":0,"exclusiveMaximum":1e3,"multipleOf":5,"description":"A number."}`, "/** A number. (integer, >= 0, < 1e3, a multiple of 5) */\n"},
		{`{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, "/** integer */\n"},
		{`{"type":"bigint","minimum":0}`, "/** integer, >= 0 */\n"},
		{`{"exclusiveMinimum":true,"minimum":1}`, "/** >= 1 */\n"},
		{`{"minLength":1}`, "/** at least 1 character */\n"},
		{`{"minItems":2,"maxItems":2,"uniqueItems":true,"items":{"format":"date"}}`, "/** 2 items, all different, each format date */\n"},
		{`{"minProperties":0,"maxProperties":3,"deprecated":true}`, "/** at most 3 members, deprecated */\n"},
		{`{"anyOf":[{"type":"null"},{"type":"string","pattern":"^a"}],"default":null,"examples":["ab"]}`, "/** such as \"ab\", pattern ^a */\n"},
		{`{"contentEncoding":"base64","default":{"a":  [1,	2]}}`, "/** in base64, default {\"a\": [1, 2]} */\n"},
	} {
		schema := parseNode(json.RawMessage(r.schema), promptLimits())
		if got := comment(newPrinter("t", Full, nil, promptLimits()).docLines(&schema), ""); got != r.want {
			t.Errorf("%s\n is %q\nwant %q", r.schema, got, r.want)
		}
	}
}

func TestToolCall(t *testing.T) {
	for _, r := range []struct {
		tool Tool
		want string
	}{
		{Tool{Name: "search_web"}, `search_web`},
		{Tool{Name: "any-name"}, `tools["any-name"]`},
		{Tool{Name: "then"}, `tools.then`},
		{Tool{Name: "new"}, `tools["new"]`},
		{Tool{Name: "2nd"}, `tools["2nd"]`},
		{Tool{Name: ""}, `tools[""]`},
		{Tool{Name: "crm_get", Group: "crm", Member: "get"}, `crm.get`},
		{Tool{Name: "crm_get-it", Group: "crm", Member: "get-it"}, `crm["get-it"]`},
		{Tool{Name: "crm_", Group: "crm"}, `crm_`},
		{Tool{Name: "console.log", Group: "console", Member: "log"}, `tools["console.log"]`},
		{Tool{Name: "a-b_get", Group: "a-b", Member: "get"}, `tools["a-b_get"]`},
	} {
		if got := r.tool.Call(); got != r.want {
			t.Errorf("display of %+v is %s, want %s", r.tool, got, r.want)
		}
	}
}

// TestCallable_globals reads the declarations of script globals for editors.
func TestCallable_globals(t *testing.T) {
	globals, err := os.ReadFile("../scripttypes/globals.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^declare (?:const|function|class) (\w+)`).FindAllStringSubmatch(string(globals), -1)
	if len(found) < 40 {
		t.Fatalf("only %d globals are declared", len(found))
	}
	for _, name := range found {
		if Callable(name[1]) {
			t.Errorf("a tool could take the name %s", name[1])
		}
	}
}

func TestDeclare_redundantTitle(t *testing.T) {
	for _, r := range []struct{ title, want string }{
		{"Get Customer", "/** Returns it. */"},
		{"CRM: get customer", "/** Returns it. */"},
		{"Find somebody", "/**\n   * Find somebody\n   * Returns it.\n   */"},
	} {
		declared := Describe(Tool{Name: "crm_get_customer", Group: "crm", Member: "get_customer", Title: r.title, Description: "Returns it."})
		if want := "declare const crm: {\n  " + r.want + "\n  get_customer(args: { [name: string]: unknown }): Promise<unknown>;\n};\n"; declared != want {
			t.Errorf("%s is declared as\n%s", r.title, declared)
		}
	}
}

// The values beyond the limit appear as their types.
func TestDeclare_longEnum(t *testing.T) {
	schema := wide(`{"enum":[`, `%d`, `,64,"a","b",true,null,[1],{"a":1}]}`, maxLiterals)
	want := make([]string, maxLiterals)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	p := newPrinter("t", Full, typeNames{}, promptLimits())
	got, doc := p.root(schema, 0)
	if diff := cmp.Diff(strings.Join(want, " | ")+` | number | string | boolean | null | unknown[] | { [name: string]: unknown }`, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := comment(p.docLines(&doc.root), ""); got != "/** 64 of 71 values are shown */\n" {
		t.Errorf("the notice is %q", got)
	}
}

func TestDeclare_longValues(t *testing.T) {
	long := strings.Repeat("1", maxLiteral+1)
	for schema, want := range map[string]string{
		`{"const":` + long + `}`:                          `number`,
		`{"const":"` + long + `"}`:                        `string`,
		`{"const":[` + long + `]}`:                        `[number]`,
		`{"const":{"` + long + `":1}}`:                    `{ [name: string]: unknown }`,
		string(wide(`{"const":[`, `%d`, `]}`, 33)):        `unknown[]`,
		string(wide(`{"const":{`, `"%[1]d":1`, `}}`, 33)): `{ [name: string]: unknown }`,
	} {
		p := newPrinter("t", Full, typeNames{}, promptLimits())
		if got, _ := p.root([]byte(schema), 0); got != want {
			t.Errorf("%.40s is %s, want %s", schema, got, want)
		}
	}
}

var update = flag.Bool("update", false, "write what is printed into the golden files")

// holdGolden compares a text with a golden file in testdata.
func holdGolden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// mistakes returns the TypeScript errors in a text.
func mistakes(text string) string {
	_, list := scripting.Compile(scripting.Source{Name: "declarations", Kind: scripting.Tool, Language: scripting.TS, Transpiler: esbuild.New(), Text: diag.WholeFile("declarations.ts", text)})
	if !list.HasErrors() {
		return ""
	}
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Summary + ": " + d.Detail + "\n")
	}
	return b.String()
}
