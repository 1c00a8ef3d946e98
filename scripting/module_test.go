package scripting

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
)

func moduleOf(kind Kind, language Language, text string) Source {
	name := "lib/t.js"
	if language == TS {
		name = "lib/t.ts"
	}
	return Source{
		Name: "t", Kind: kind, Language: language, Path: name, Text: diag.WholeFile("tools.d/"+name, text), Transpiler: esbuild.New(),
		Import: importing(map[string]string{
			"lib/math.js": "export const twice = (n) => 2 * n;\nexport const via = (ctx) => ctx.call.via;\nexport function fail() {\n  throw new Error('too big') }",
		}),
	}
}

func TestModule_runs(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		text string
		want string
	}{
		{"a function", Tool, "export default function (input, ctx) { return [input.a, ctx.call.via]; }", `[2,"test"]`},
		{"an async function", Tool, "export default async function run(input) { return (await Promise.resolve(input)).a; }", `2`},
		{"an arrow function", Tool, "export default ({ a, b = 3 }) => a + b;", `5`},
		{"other names", Tool, "export default (args, context) => [args.a, context.call.via];", `[2,"test"]`},
		{"a context in a pattern", Tool, "export default ({ a }, { call: { via }, log: { info } }) => [a, via, typeof info];", `[2,"test","function"]`},
		{"the rest of a context", Tool, "export default (input, { call, ...rest }) => [call.via, typeof rest.log, 'http' in rest];", `["test","object",false]`},
		{"a context that is passed on", Tool, "import { via } from './math.js';\nexport default (input, ctx) => via(ctx);", `"test"`},
		{"a shadowed parameter", Tool, "export default (input, ctx) => [{ a: 1 }].map((input) => input.a).concat(((ctx) => ctx.call)({ call: input.a }));", `[1,2]`},
		{"statements after the function", Tool, "import { twice } from './math.js';\nexport default (input) => twice(n) + input.a;\nconst n = 4;", `10`},
		{"await at the top level", Tool, "const n = await Promise.resolve(4);\nexport default () => n;", `4`},
		{"recursion", Tool, "export default function run(input, ctx) { return input.a > 0 ? run({ a: input.a - 1 }, ctx) + ctx.call.via : ''; }", `"testtest"`},
		{"all arguments", Tool, "export default function () { return [arguments.length, arguments[0].a, arguments[1].call.via]; }", `[2,2,"test"]`},
		{"a changed context", Tool, "export default (input, ctx) => { ctx.b = 3; ctx.call = { via: 'x' }; return [ctx.b, ctx.call.via, call.via]; }", `[3,"x","test"]`},
		{"a changed input", Tool, "export default (input) => { input.a++; return input.a; }", `3`},
		{"a local variable named as a global", Tool, "const input = 1, log = 2;\nexport default (args, ctx) => [input, log, args.a, ctx.call.via];", `[1,2,2,"test"]`},
		{"an assigned parameter", Tool, "export default (a, ctx) => { ({ a } = a); return a; }", `2`},
		{"a comment at the end", Tool, "export default (input) => input.a // the end", `2`},
		{"globals", Tool, "export default () => [input.a, call.via];", `[2,"test"]`},
		{"a variable named as a global", Tool, "const log = 3;\nexport default (input, ctx) => [log, typeof ctx.log.info];", `[3,"function"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, language := range []Language{JS, TS} {
				if got := shown(runWith(t, call(compiled(t, moduleOf(c.kind, language, c.text)), `{"a":2}`), &fakeHost{})); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}
		})
	}
}

// The first parameter is the input of the kind.
func TestModule_kinds(t *testing.T) {
	for _, c := range []struct {
		kind              Kind
		text, input, want string
	}{
		{Resource, "export default (params, ctx) => [ctx.uri, params.id, ctx.call.via];", `{"uri":"crm://a/1","params":{"id":"1"}}`, `["crm://a/1","1","test"]`},
		{Resource, "export default ({ id }, { uri }) => [uri, id];", `{"uri":"crm://a/1","params":{"id":"1"}}`, `["crm://a/1","1"]`},
		{Prompt, "export default (input, ctx) => [{ role: 'user', content: ctx.content.text(input.id) }];", `{"id":"7"}`, `[{"role":"user","content":{"type":"text","text":"7"}}]`},
		{Complete, "export default (value, ctx) => ['C-1', 'D-1'].filter((x) => x.startsWith(value)).concat(ctx.params.team);", `{"value":"C","params":{"team":"a"}}`, `["C-1","a"]`},
		{Complete, "export default (text, { params }) => [text, params.team];", `{"value":"C","params":{"team":"a"}}`, `["C","a"]`},
		{Hook, "export default (e, ctx) => { ctx.log.info(e.tool); };", `{"tool":"t"}`, `nothing`},
	} {
		for _, language := range []Language{JS, TS} {
			if got := shown(runWith(t, call(compiled(t, moduleOf(c.kind, language, c.text)), c.input), &fakeHost{})); got != c.want {
				t.Errorf("%s: got %s, want %s", c.text, got, c.want)
			}
		}
	}
}

func TestModule_stack(t *testing.T) {
	for _, c := range []struct {
		name     string
		language Language
		text     string
		want     []string
	}{
		{"an anonymous function", JS, "// é\nexport default async function (input) {\n  await null; input.a.b.c }", []string{" tools.d/lib/t.js:3:23-24"}},
		{"a named function", TS, "interface I { a: number }\nexport default function run(input: I): never {\n  return check(input) }\nconst check = (i: I): never => {\n  throw new Error('x') }",
			[]string{"check tools.d/lib/t.ts:5:9-12", "run tools.d/lib/t.ts:3:10-15"}},
		{"an async function in TypeScript", TS, "type I = { a: any };\n\nexport default async (input: I): Promise<void> => {\n  await null; input.a.b.c }", []string{" tools.d/lib/t.ts:4:23-24"}},
		{"a function of the module", JS, "async function check(i) {\n  await null; throw new Error('x') }\nexport default async (input) => await check(input);", []string{"check tools.d/lib/t.js:2:21-24", " tools.d/lib/t.js:3:39-44"}},
		{"an import", JS, "import { fail } from './math.js';\nexport default () => fail();",
			[]string{"fail tools.d/lib/math.js:4:9-12", " tools.d/lib/t.js:2:22-26"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := runWith(t, call(compiled(t, moduleOf(Tool, c.language, c.text)), `{}`), &fakeHost{})
			if out.Failure == nil {
				t.Fatal(shown(out))
			}
			if diff := cmp.Diff(c.want, framesOf(out.Failure)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
