package scripttypes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/scripting"
)

func typesOf(config *definition.Config, d definition.Definitions) string {
	return Files(config, []*definition.Definitions{&d}, "../tools.d")[1].Content
}

// problems returns the errors of declarations as a script. A call in them would be one.
func problems(text string) string {
	text = strings.ReplaceAll(text, "\nexport ", "\n")
	_, list := scripting.Compile(scripting.Source{Name: "types", Language: scripting.TS, Transpiler: typescript.Transpiler(), Text: diag.WholeFile("types.d.ts", text)})
	if !list.HasErrors() {
		return ""
	}
	return fmt.Sprint(list)
}

func TestFiles_grants(t *testing.T) {
	orders := definition.Tool{Name: "orders", Input: json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer","default":5}}}`), Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`)}
	tool := definition.Tool{Name: "t", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)}
	tool.Grant = grant.Set{
		HTTP: []grant.HTTP{{Name: "crm"}}, FS: []grant.FS{{Name: "logs"}, {Name: "out", Write: true}}, Env: []string{"LANG"}, Secrets: []string{"key"},
		KV: []grant.KV{{Name: "notes"}}, Exec: []grant.Exec{{Name: "git"}, {Name: "show", Params: []grant.Param{{Name: "rev"}}}},
		SQL:  []grant.SQL{{Name: "shop"}, {Name: "log", Write: true}, {Name: "files", PathFromCall: true}},
		Ask:  &grant.Ask{Elicit: true},
		Call: []string{"ord*", "gh_issue", "jira_*"}, Modules: []grant.Module{{Name: "ledger"}},
	}
	text := typesOf(nil, definition.Definitions{Tools: []definition.Tool{tool, orders}, Hooks: []definition.Hook{{Name: "h"}}})
	for _, want := range []string{
		"input: {\n      /** integer, default 5 */\n      limit: number;\n    };",
		"arguments: {\n      /** integer, default 5 */\n      limit?: number;\n    };",
		"output: { n: number };",
		"readonly http: { readonly crm: HttpClient };",
		`readonly fs: { readonly logs: Omit<Folder, "writeText" | "writeBytes" | "remove">; readonly out: Folder };`,
		"readonly env: { readonly LANG: string | undefined };",
		"readonly secrets: { readonly key: string };",
		"readonly kv: { readonly notes: KeptValues };",
		"readonly exec: { readonly git: () => Promise<Ended>; readonly show: (params: { rev: string | number }) => Promise<Ended> };",
		`readonly sql: { readonly shop: Pick<Database, "query">; readonly log: Pick<Database, "query" | "exec">; readonly files: Pick<Database, "open"> };`,
		"readonly tools: Callable<`ord${string}`> & { readonly gh_issue: (args?: object) => Promise<any>; readonly [name: `jira_${string}`]: (args?: object) => Promise<any> };",
		`  readonly orders: (args: Tools["orders"]["arguments"]) => Promise<Tools["orders"]["output"]>;`,
		"readonly modules: { readonly ledger:", "readonly elicit: typeof elicit;", "readonly ask: typeof ask;",
		`h: { ctx: Pick<Context, "log" | "vars"> & {} };`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if found := problems(text); found != "" {
		t.Error(found)
	}
}

// The size of the types is linear in the number of tools, whatever they may call.
func TestFiles_callsOfAll(t *testing.T) {
	size := func(n int) int {
		var d definition.Definitions
		for i := range n {
			tool := definition.Tool{Name: fmt.Sprintf("tool_%04d", i)}
			tool.Grant.Call = []string{"*", "tool_*", fmt.Sprintf("*_%04d", i), "tool_0000"}
			d.Tools = append(d.Tools, tool)
		}
		return len(typesOf(nil, d))
	}
	none := size(0)
	if few, many := size(50)-none, size(500)-none; many > 11*few {
		t.Errorf("%d bytes for 50 tools, and %d for 500", few, many)
	}
}

// Every member of a schema is in its type, because a type without it rejects correct scripts.
func TestFiles_largeSchemas(t *testing.T) {
	list := func(before, item, after string, n int) json.RawMessage {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "@", fmt.Sprint(i))
		}
		return json.RawMessage(before + strings.Join(items, ",") + after)
	}
	description := strings.Repeat("words ", 200)
	for name, test := range map[string]struct {
		schema json.RawMessage
		want   []string
	}{
		"members":      {list(`{"properties":{`, `"m@":{"type":"string","description":"`+description+`"}`, `}}`, 400), []string{"m0?: string;", "m399?: string;"}},
		"required":     {list(`{"properties":{},"required":[`, `"m@"`, `]}`, 4000), []string{"m0: unknown;", "m3999: unknown;"}},
		"values":       {list(`{"properties":{"a":{"enum":[`, `"v@"`, `]}}}`, 300), []string{`"v0" |`, `| "v299"`}},
		"alternatives": {list(`{"properties":{"a":{"anyOf":[`, `{"const":@}`, `]}}}`, 300), []string{`0 |`, `| 299`}},
		"depth":        {json.RawMessage(strings.Repeat(`{"properties":{"a":`, 60) + `{"type":"string"}` + strings.Repeat(`}}`, 60)), []string{"a?: string"}},
		"named types":  {list(`{"properties":{`, `"m@":{"type":"array","items":{"$ref":"#/properties/m@/x"},"x":{"properties":{"y@":{"type":"string"}}}}`, `}}`, 100), []string{"y0?: string", "y99?: string"}},
		"name":         {json.RawMessage(`{"properties":{"` + strings.Repeat("n", 300) + `":{"type":"string"}}}`), []string{`nnn"?: string`}},
	} {
		t.Run(name, func(t *testing.T) {
			text := typesOf(nil, definition.Definitions{Tools: []definition.Tool{{Name: "t", Input: test.schema, Output: test.schema}}})
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %d bytes", want, len(text))
				}
			}
			if comments := strings.Count(text, "words"); comments > 3*(64<<10)/len("words ") {
				t.Errorf("%d words of comments", comments)
			}
		})
	}
}

func TestFiles_resources(t *testing.T) {
	address, err := uritemplate.Parse("crm://{team}/{id}{?view}")
	if err != nil {
		t.Fatal(err)
	}
	run, names := &definition.Code{}, []string{"a", "b"}
	granted := definition.Call{Grant: grant.Set{KV: []grant.KV{{Name: "notes"}}, Ask: &grant.Ask{Elicit: true}}}
	text := typesOf(nil, definition.Definitions{
		Resources: []definition.Resource{{Name: "now", Run: run}, {Name: "static", Content: &definition.Content{}}},
		Templates: []definition.Template{{Name: "customer", URITemplate: address, Run: run, Call: granted, Params: []definition.Param{
			{Name: "team", Complete: &definition.Complete{Values: names}}, {Name: "id", Complete: &definition.Complete{Run: run}}, {Name: "view"},
		}}},
		Prompts: []definition.Prompt{
			{Name: "greet", Call: granted, Arguments: []definition.Argument{{Name: "name", Required: true, Complete: &definition.Complete{Run: run}}}},
			{Name: "plain", Arguments: []definition.Argument{{Name: "name", Complete: &definition.Complete{Values: names}}}},
		},
	})
	const kv = "{\n      readonly kv: { readonly notes: KeptValues };\n"
	const ask = "      readonly elicit: typeof elicit;\n      readonly ask: typeof ask;\n"
	const complete = `complete: Pick<Context, "agent" | "call" | "log" | "vars"> & { readonly params: Readonly<Partial<`
	for _, want := range []string{
		"  now: {\n    params: undefined;\n    ctx: Context & Reading & {};\n  };\n}",
		"  customer: {\n    params: Readonly<{ team: string; id: string; view?: string }>;\n    ctx: Context & Reading & " + kv + ask + "    };\n",
		complete + "{ team: string; id: string; view?: string }>> } & " + kv + "    };\n  };\n}",
		complete + "{ name: string }>> } & " + kv + "    };\n  };\n  plain: {\n    input: { name?: string };\n    ctx: Context & {};\n  };\n}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if found := problems(text); found != "" {
		t.Error(found)
	}
}

func TestFiles_deterministic(t *testing.T) {
	a, b := definition.Tool{Name: "a"}, definition.Tool{Name: "b"}
	config := &definition.Config{Variables: map[string]definition.Variable{"y": {Name: "y"}, "x": {Name: "x"}, "z": {Name: "z"}}}
	first := typesOf(config, definition.Definitions{Tools: []definition.Tool{a, b}})
	if diff := cmp.Diff(first, typesOf(config, definition.Definitions{Tools: []definition.Tool{b, a}})); diff != "" {
		t.Error(diff)
	}
}

// Nothing in a name or a description ends a comment, a literal or a line.
func TestFiles_hostile(t *testing.T) {
	var texts []string
	for _, evil := range []string{
		"*/ evil(); /*", "*/\nexport const evil = 1;\n/*", "\"; evil(); \"", "'+evil()+'", "`${evil()}`", "a\rexport const b = 1;", "a\u2028export const c = 1;\u2029",
		"\u202ednif\u202c", "\x00\x1b[31m", "\\", "\\u002a/ evil()", "__proto__", "constructor", "</script>", "]: { evil(); }", "a: string } }\nexport const d = 1; interface X { y: {", "\xff*/ evil()", "", "Tools", "HttpClient", "Promise",
	} {
		quoted, _ := json.Marshal(evil)
		q := string(quoted)
		schema := json.RawMessage(`{"type":"object","description":` + q + `,"properties":{` + q + `:{"type":"string","description":` + q + `,"default":` + q + `,"pattern":` + q + `,"enum":[` + q + `]},"r":{"$ref":"#/$defs/n"}},"required":[` + q + `],"$defs":{"n":{"title":` + q + `,"properties":{"n":{"$ref":"#/$defs/n"}}}}}`)
		tool := definition.Tool{Name: evil, Title: evil, Description: evil, Input: schema, Output: schema}
		tool.Grant = grant.Set{HTTP: []grant.HTTP{{Name: evil}}, Env: []string{evil}, Secrets: []string{evil}, Call: []string{evil, "*", evil + "*", "*$" + evil + "{*"}, Exec: []grant.Exec{{Name: evil, Params: []grant.Param{{Name: evil}}}}, Modules: []grant.Module{{Name: evil}}}
		prompt := definition.Prompt{Name: evil, Description: evil, Arguments: []definition.Argument{{Name: evil, Complete: &definition.Complete{Run: &definition.Code{}}}}}
		config := &definition.Config{Variables: map[string]definition.Variable{evil: {Name: evil, Description: evil, Type: schema}}, Hooks: []definition.Hook{{Name: evil}}}
		texts = append(texts, typesOf(config, definition.Definitions{Tools: []definition.Tool{tool}, Prompts: []definition.Prompt{prompt}, Resources: []definition.Resource{{Name: evil, Description: evil, Run: &definition.Code{}}}}))
	}
	declares := regexp.MustCompile(`(?m)^\s*(?:export )?(?:declare )?(?:const|let|var|function|class|namespace|import)\b`)
	for _, text := range texts {
		if found := problems(text); found != "" {
			t.Errorf("%s in\n%s", found, text)
		}
		if found := declares.FindString(text); found != "" {
			t.Errorf("%q was put into\n%s", found, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x2028 && r <= 0x202e }); i >= 0 {
			t.Errorf("the invisible character %q is in\n%s", text[i:i+3], text)
		}
	}
}

func TestGlobals_marked(t *testing.T) {
	files := Files(nil, nil, "../tools.d")
	for _, f := range files {
		first, _, _ := strings.Cut(f.Content, "\n")
		if !strings.Contains(first, Marker) {
			t.Errorf("%s starts with %s", f.Name, first)
		}
	}
	if !slices.ContainsFunc(files, func(f File) bool { return f.Content == globals }) {
		t.Error("no file has the globals")
	}
}
