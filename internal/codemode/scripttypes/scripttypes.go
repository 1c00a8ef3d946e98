// Package scripttypes writes TypeScript declarations for the authors of scripts: the globals, and
// for each tool, resource, prompt and hook the types of its input, its result and its context.
//
// [Files] returns the files for one version of the definitions. Names and descriptions are
// untrusted: they appear only in comments and literals, and are escaped there. The text
// depends on nothing but the definitions.
package scripttypes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/codemode/toolprompt"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Settings is the name of the file with the settings for tsc.
const Settings = "tsconfig.json"

// Marker is in the first line of every file that may be overwritten.
const Marker = "Written by mcpd types."

//go:embed globals.d.ts
var globals string

// File is a file with declarations.
type File struct {
	Name    string
	Content string
}

// Files returns the declaration files. toolsDir is the tools directory relative to their directory,
// with slashes.
func Files(config *definition.Config, files []*definition.Definitions, toolsDir string) []File {
	return []File{
		{"globals.d.ts", globals},
		{"types.d.ts", declarations(config, files)},
		{Settings, "// " + Marker + "\n" + tsconfig(toolsDir)},
	}
}

// Covers reports whether settings belong to a tools directory, relative to their directory. Settings
// that Files has not returned are of every directory.
func Covers(settings, toolsDir string) bool {
	first, _, _ := strings.Cut(settings, "\n")
	return !strings.Contains(first, Marker) || strings.Contains(settings, toolsGlob(toolsDir))
}

func toolsGlob(toolsDir string) string { return jsonText(toolsDir + "/**/*") }

// Project returns the tsconfig.json for a project that has none. dir is the directory of the other
// files.
func Project(dir string) string {
	return "{\n  \"extends\": " + jsonText("./"+dir+"/tsconfig.json") + "\n}\n"
}

func tsconfig(toolsDir string) string {
	return `{
  "compilerOptions": {
    "target": "es2022",
    "lib": ["es2022"],
    "types": [],
    "module": "esnext",
    "moduleResolution": "bundler",
    "allowImportingTsExtensions": true,
    "resolveJsonModule": true,
    "allowJs": true,
    "strict": true,
    "noEmit": true
  },
  "include": ["*.d.ts", ` + toolsGlob(toolsDir) + `]
}
`
}

func jsonText(text string) string {
	encoded, _ := json.Marshal(text) // strings always encode
	return string(encoded)
}

// writer writes the declarations of one version.
type writer struct {
	strings.Builder
	types *toolprompt.Types
	tools []string // the names of the tools of files
}

// reservedNames returns the names that types.d.ts declares, or uses from TypeScript.
func reservedNames() []string {
	return []string{"Tools", "Resources", "Templates", "Prompts", "Hooks", "Vars", "Context", "Reading", "ToolFunctions", "Callable", "Run", "RunResource", "RunTemplate", "RunPrompt", "RunComplete", "RunHook", "Record", "Readonly", "Pick", "Extract", "Omit", "Partial", "Required", "ReturnType", "Parameters", "Awaited"}
}

var declaredName = regexp.MustCompile(`(?m)^(?:declare )?(?:interface|type|class|const|function) (\w+)`)

func declarations(config *definition.Config, files []*definition.Definitions) string {
	taken := reservedNames()
	for _, found := range declaredName.FindAllStringSubmatch(globals, -1) {
		taken = append(taken, found[1])
	}
	w := &writer{types: toolprompt.NewTypes(taken...)}
	var tools []*definition.Tool
	var resources []*definition.Resource
	var templates []*definition.Template
	var prompts []*definition.Prompt
	var hooks []*definition.Hook
	for _, file := range files {
		tools = appendPointers(tools, file.Tools)
		resources = appendPointers(resources, file.Resources)
		templates = appendPointers(templates, file.Templates)
		prompts = appendPointers(prompts, file.Prompts)
		hooks = appendPointers(hooks, file.Hooks)
	}
	if config != nil {
		hooks = appendPointers(hooks, config.Hooks)
	}
	slices.SortFunc(tools, func(a, b *definition.Tool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(resources, func(a, b *definition.Resource) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(templates, func(a, b *definition.Template) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(prompts, func(a, b *definition.Prompt) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(hooks, func(a, b *definition.Hook) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range tools {
		w.tools = append(w.tools, t.Name)
	}

	w.WriteString("// " + Marker + " The types of the tools, resources, prompts and hooks.\n\n")
	w.vars(config)
	w.WriteString("/** The members that every context of a tool, resource or prompt has. */\nexport interface Context {\n" +
		"  readonly agent: typeof agent;\n  readonly call: typeof call;\n  readonly content: typeof content;\n  readonly progress: typeof progress;\n  readonly log: typeof log;\n  readonly vars: Vars;\n}\n\n" +
		"/** The URI that a resource reads. */\nexport interface Reading {\n  readonly uri: string;\n}\n\n")
	w.functions(tools)
	w.WriteString("export interface Tools {\n")
	for _, t := range tools {
		w.tool(t)
	}
	w.WriteString("}\n\nexport interface Resources {\n")
	for _, r := range resources {
		if r.Run != nil {
			fmt.Fprintf(w, "%s  %s: {\n    params: undefined;\n    ctx: Context & Reading & %s;\n  };\n", toolprompt.Comment(r.Description, 1), toolprompt.Key(r.Name), w.grants(r.Grant))
		}
	}
	w.WriteString("}\n\nexport interface Templates {\n")
	for _, t := range templates {
		if t.URITemplate == nil {
			continue
		}
		var params []definition.Argument
		for _, p := range t.Params {
			params = append(params, definition.Argument{Name: p.Name, Required: slices.Contains(t.URITemplate.Required(), p.Name), Complete: p.Complete})
		}
		fmt.Fprintf(w, "%s  %s: {\n    params: Readonly<%s>;\n    ctx: Context & Reading & %s;\n%s  };\n", toolprompt.Comment(t.Description, 1), toolprompt.Key(t.Name), arguments(params), w.grants(t.Grant), w.completion(params, t.Grant))
	}
	w.WriteString("}\n\nexport interface Prompts {\n")
	for _, p := range prompts {
		fmt.Fprintf(w, "%s  %s: {\n    input: %s;\n    ctx: Context & %s;\n%s  };\n", toolprompt.Comment(p.Description, 1), toolprompt.Key(p.Name), arguments(p.Arguments), w.grants(p.Grant), w.completion(p.Arguments, p.Grant))
	}
	w.WriteString("}\n\nexport interface Hooks {\n")
	for _, h := range hooks {
		fmt.Fprintf(w, "  %s: { ctx: Pick<Context, \"log\" | \"vars\"> & %s };\n", toolprompt.Key(h.Name), w.grants(h.Grant))
	}
	w.WriteString(`}

/** The function of a tool. */
export type Run<Name extends keyof Tools> = (
  input: Tools[Name]["input"],
  ctx: Tools[Name]["ctx"],
) => Tools[Name]["output"] | Promise<Tools[Name]["output"]>;

/** The function of a resource. */
export type RunResource<Name extends keyof Resources> = (params: undefined, ctx: Resources[Name]["ctx"]) => unknown;

/** The function of a resource template. */
export type RunTemplate<Name extends keyof Templates> = (params: Templates[Name]["params"], ctx: Templates[Name]["ctx"]) => unknown;

/** The function of a prompt. */
export type RunPrompt<Name extends keyof Prompts> = (input: Prompts[Name]["input"], ctx: Prompts[Name]["ctx"]) => unknown;

/** The function that completes a value, as in RunComplete<Prompts["NAME"]>. */
export type RunComplete<Owner extends { complete: unknown }> = (value: string, ctx: Owner["complete"]) => string[] | Promise<string[]>;

/** The function of a hook. */
export type RunHook<Name extends keyof Hooks> = (hook: typeof event, ctx: Hooks[Name]["ctx"]) => unknown;
`)
	if declared := w.types.Declared(); declared != "" {
		w.WriteString("\n" + declared)
	}
	return w.String()
}

func appendPointers[T any](list []*T, values []T) []*T {
	for i := range values {
		list = append(list, &values[i])
	}
	return list
}

func (w *writer) vars(config *definition.Config) {
	w.WriteString("/** The variables of the configuration file. */\nexport interface Vars {\n")
	if config != nil {
		for _, name := range slices.Sorted(maps.Keys(config.Variables)) {
			v := config.Variables[name]
			w.WriteString(toolprompt.Comment(v.Description, 1) + "  readonly " + toolprompt.Key(v.Name) + ": " + w.types.Print("var_"+v.Name, v.Type, 1, true) + ";\n")
		}
	}
	w.WriteString("}\n\n")
}

func (w *writer) tool(t *definition.Tool) {
	input := t.PolicyInput()
	w.WriteString(toolprompt.Comment(t.Description, 1))
	fmt.Fprintf(w, "  %s: {\n", toolprompt.Key(t.Name))
	w.WriteString("    /** What the script receives. */\n    input: " + w.types.Print(t.Name, input, 2, true) + ";\n")
	w.WriteString("    /** What a caller passes. */\n    arguments: " + w.types.Print(t.Name, t.Input, 2, false) + ";\n")
	w.WriteString("    output: " + w.types.Print(t.Name, t.Output, 2, false) + ";\n")
	w.WriteString("    ctx: Context & " + w.grants(t.Grant) + ";\n  };\n")
}

// completion returns the context of the scripts that complete arguments; "" if there are none.
func (w *writer) completion(list []definition.Argument, granted grant.Set) string {
	if !slices.ContainsFunc(list, func(a definition.Argument) bool { return a.Complete != nil && a.Complete.Run != nil }) {
		return ""
	}
	granted.Ask = nil
	return fmt.Sprintf("    complete: Pick<Context, \"agent\" | \"call\" | \"log\" | \"vars\"> & { readonly params: Readonly<Partial<%s>> } & %s;\n", arguments(list), w.grants(granted))
}

// arguments returns the type of the arguments of a prompt or a template, which are strings.
func arguments(list []definition.Argument) string {
	if len(list) == 0 {
		return "{}"
	}
	var members []string
	for _, a := range list {
		mark := "?: "
		if a.Required {
			mark = ": "
		}
		members = append(members, toolprompt.Key(a.Name)+mark+"string")
	}
	return "{ " + strings.Join(members, "; ") + " }"
}

// grants returns the type of the granted objects.
func (w *writer) grants(set grant.Set) string {
	var objects []string
	object := func(name string, members []string) {
		if len(members) > 0 {
			objects = append(objects, "readonly "+name+": { "+strings.Join(members, "; ")+" }")
		}
	}
	object("http", each(set.HTTP, func(g grant.HTTP) string { return member(g.Name, "HttpClient") }))
	object("fs", each(set.FS, func(g grant.FS) string {
		if g.Write {
			return member(g.Name, "Folder")
		}
		return member(g.Name, `Omit<Folder, "writeText" | "writeBytes" | "remove">`)
	}))
	object("env", each(set.Env, func(name string) string { return member(name, "string | undefined") }))
	object("secrets", each(set.Secrets, func(name string) string { return member(name, "string") }))
	object("kv", each(set.KV, func(g grant.KV) string { return member(g.Name, "KeptValues") }))
	object("exec", each(set.Exec, func(g grant.Exec) string {
		if len(g.Params) == 0 {
			return member(g.Name, "() => Promise<Ended>")
		}
		params := each(g.Params, func(p grant.Param) string { return toolprompt.Key(p.Name) + ": string | number" })
		return member(g.Name, "(params: { "+strings.Join(params, "; ")+" }) => Promise<Ended>")
	}))
	object("sql", each(set.SQL, func(g grant.SQL) string { return member(g.Name, database(g)) }))
	if callees := w.callees(set.Call); callees != "" {
		objects = append(objects, "readonly tools: "+callees)
	}
	object("modules", each(set.Modules, func(m grant.Module) string {
		return member(m.Name, "Readonly<Record<string, (args?: object) => Promise<any>>>")
	}))
	for _, name := range set.Ask.Names() {
		objects = append(objects, "readonly "+name+": typeof "+name)
	}
	if set.Ask != nil {
		objects = append(objects, "readonly ask: typeof ask")
	}
	if len(objects) == 0 {
		return "{}"
	}
	return "{\n      " + strings.Join(objects, ";\n      ") + ";\n    }"
}

// functions writes the functions of all tools, from which Callable selects. The contexts of tools name
// them, so that the declarations grow with the tools and not with the pairs of tools.
func (w *writer) functions(tools []*definition.Tool) {
	w.WriteString("/** The functions of the tools, for the scripts that may call them. */\nexport interface ToolFunctions {\n")
	for _, t := range tools {
		key := toolprompt.Literal(t.Name)
		fmt.Fprintf(w, "  readonly %s: (args: Tools[%s][\"arguments\"]) => Promise<Tools[%s][\"output\"]>;\n", toolprompt.Key(t.Name), key, key)
	}
	w.WriteString("}\n\n/** The functions of the tools with a name of a type. */\n" +
		"export type Callable<Name> = Pick<ToolFunctions, Extract<keyof ToolFunctions, Name>>;\n\n")
}

// callees returns the type of the object with the tools that names and patterns match; "" without
// any. Names and patterns without a tool of the files belong to upstream servers.
func (w *writer) callees(patterns []string) string {
	var selected, upstream []string
	const function = "(args?: object) => Promise<any>"
	for _, pattern := range slices.Compact(slices.Sorted(slices.Values(patterns))) {
		known := slices.ContainsFunc(w.tools, func(name string) bool { return wildcard.Matches(pattern, name) })
		template := toolprompt.Template(strings.Split(pattern, "*"), "string")
		switch {
		case known && wildcard.Is(pattern):
			selected = append(selected, template)
		case known:
			selected = append(selected, toolprompt.Literal(pattern))
		case wildcard.Is(pattern):
			upstream = append(upstream, "readonly [name: "+template+"]: "+function)
		default:
			upstream = append(upstream, member(pattern, function))
		}
	}
	var parts []string
	if len(selected) > 0 {
		parts = append(parts, "Callable<"+strings.Join(selected, " | ")+">")
	}
	if len(upstream) > 0 {
		parts = append(parts, "{ "+strings.Join(upstream, "; ")+" }")
	}
	return strings.Join(parts, " & ")
}

// database returns the type of a database object.
func database(g grant.SQL) string {
	switch {
	case g.PathFromCall:
		return `Pick<Database, "open">`
	case g.Write:
		return `Pick<Database, "query" | "exec">`
	}
	return `Pick<Database, "query">`
}

func member(name, of string) string { return "readonly " + toolprompt.Key(name) + ": " + of }

func each[T any](list []T, print func(T) string) (printed []string) {
	for _, one := range list {
		printed = append(printed, print(one))
	}
	return printed
}
