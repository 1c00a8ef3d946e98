package lsp

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestRename_files renames in the files of testdata/rename. The comment of each archive is the place
// to rename, as a file and the text before the name, the new name, and what is expected: an error, or
// "ok" if the files that start with want/ are the result.
func TestRename_files(t *testing.T) {
	names, err := filepath.Glob("testdata/rename/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			given, want := map[string]string{}, map[string]string{}
			for _, f := range archive.Files {
				if result, ok := strings.CutPrefix(f.Name, "want/"); ok {
					want[result] = string(f.Data)
				} else {
					given[f.Name] = string(f.Data)
				}
			}
			renames := 0
			for line := range strings.Lines(string(archive.Comment)) {
				parts := strings.Split(strings.TrimSpace(line), " | ")
				if len(parts) != 4 {
					continue
				}
				renames++
				got, outcome := renameIn(t, given, parts[0], parts[1], parts[2])
				if !strings.Contains(outcome, parts[3]) {
					t.Errorf("rename after %q to %s: %s, want %s", parts[1], parts[2], outcome, parts[3])
				}
				if diff := cmp.Diff(want, got); parts[3] == "ok" && diff != "" {
					t.Errorf("rename after %q to %s (-want +got):\n%s", parts[1], parts[2], diff)
				}
			}
			if renames == 0 {
				t.Error("the archive names no place to rename")
			}
		})
	}
}

// renameIn returns the changed files and "ok", or the error.
func renameIn(t *testing.T, files map[string]string, file, before, to string) (changed map[string]string, outcome string) {
	t.Helper()
	x, plain := &index{unit: utf16}, map[string]*source{}
	project := &Project{Config: "mcpd.hcl"}
	for path, text := range files {
		if strings.HasSuffix(path, ".hcl") {
			x.sources = append(x.sources, newSource(path, path, text, project))
			continue
		}
		if strings.HasSuffix(path, ".json") {
			x.jsonFiles = append(x.jsonFiles, path)
		}
		plain[path] = newPlainSource(path, path, text)
	}
	slices.SortFunc(x.sources, func(a, b *source) int { return strings.Compare(a.path, b.path) })
	var p *cursor
	if s := plain[file]; s != nil {
		d := &document{uri: file, path: file, text: s.text}
		f := x.scriptFile(d)
		if f == nil {
			return nil, "no script"
		}
		p = f.cursor(x, offsetAfter(t, s.text, before))
		plain[file] = p.source
	}
	for _, s := range x.sources {
		if s.path == file {
			p = newCursor(x, s, offsetAfter(t, s.text, before))
		}
	}
	target, _, _ := p.renamed()
	if target == nil {
		return nil, "nothing to rename"
	}
	r := newRenaming(p, *target, to)
	r.read, r.relative = func(path string) *source { return plain[path] }, func(path string) string { return path }
	if r.collect(); r.failed != nil {
		return nil, r.failed.Error()
	}
	changed = map[string]string{}
	for s, edits := range r.edits {
		changed[s.path] = s.apply(edits)
	}
	return changed, "ok"
}

func offsetAfter(t *testing.T, text, before string) int {
	t.Helper()
	i := strings.Index(text, before)
	if i < 0 {
		t.Fatalf("no %q in the file", before)
	}
	return i + len(before)
}

// TestRename_refuses fails where a text may refer to the name by other means. An archive may have
// several files; the first one defines the tool t, and its input a.
func TestRename_refuses(t *testing.T) {
	const (
		tool   = "tool \"t\" {}\n"
		caller = "tool \"t\" { allow { call { tools = [\"t\"] } }\n  run = "
		input  = "tool \"t\" { input \"a\" { type = string }\n  run = "
		noRun  = "tool \"t\" { input \"a\" { type = string } }\n"
		calls  = noRun + "tool \"u\" { allow { call { tools = [\"*\"] } }\n  run = "
	)
	for name, test := range map[string]struct{ text, want string }{
		"pattern":                   {tool + `policy "p" { tools = ["t*"] }`, "a.hcl:2: the pattern t* matches t, but not new"},
		"pattern of new":            {tool + `policy "p" { tools = ["n*"] }`, "a.hcl:2: n* matches new, but not t"},
		"name of new":               {tool + `policy "p" { tools = ["new"] }`, "a.hcl:2: new matches new, but not t"},
		"template":                  {tool + `policy "p" { tools = ["${var.x}"] }`, "a.hcl:2: the name of a tool is computed"},
		"variable":                  {tool + `policy "p" { tools = concat(["a"], var.tools) }`, "a.hcl:2: the names of tools are computed"},
		"local":                     {tool + "locals { x = [\"t\"] }\npolicy \"p\" { tools = local.x }", "a.hcl:3: the names of tools are computed"},
		"twice":                     {tool + tool, "2 tools have the name t"},
		"JSON":                      {tool + "-- b.hcl.json --\n{\"test\": {\"t\": {\"tool\": \"t\"}}}\n", "b.hcl.json:1: t is used in JSON syntax"},
		"CEL prefix":                {tool + `policy "p" { deny = "tool.name.startsWith('t')" }`, "a.hcl:2: the name of the tool is used here"},
		"CEL variable":              {tool + `policy "p" { deny = "tool.name == vars.x" }`, "a.hcl:2: the name of the tool is compared with an expression"},
		"CEL new":                   {tool + `policy "p" { deny = "tool.name == 'new'" }`, "a.hcl:2: new is the name of another tool"},
		"CEL template":              {tool + `policy "p" { deny = "tool.name == '${local.t}'" }`, "a.hcl:2: t may stand in a template"},
		"CEL in parentheses":        {tool + `policy "p" { deny = "(tool).name == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL in a list":             {tool + `policy "p" { deny = "[tool].exists(x, x.name == 't')" }`, "a.hcl:2: tool is used as a whole"},
		"CEL of a list":             {tool + `policy "p" { deny = "[tool][0].name == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL conditional":           {tool + `policy "p" { deny = "(true ? tool : tool).name == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL mapped":                {tool + `policy "p" { deny = "[1].map(x, tool).exists(x, x.name == 't')" }`, "a.hcl:2: tool is used as a whole"},
		"CEL bound":                 {tool + `policy "p" { deny = "cel.bind(x, tool, x.name == 't')" }`, "a.hcl:2: tool is used as a whole"},
		"CEL optional":              {tool + `policy "p" { deny = "tool.?name.orValue('') == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL leading dot":           {tool + `policy "p" { deny = ".tool.name == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL index":                 {tool + `policy "p" { deny = "tool['name'] == 't'" }`, "a.hcl:2: tool is used as a whole"},
		"CEL caller in parentheses": {tool + `policy "p" { deny = "(call).parent == 't'" }`, "a.hcl:2: call is used as a whole"},
		"CEL caller in a list":      {tool + `policy "p" { deny = "[call].exists(c, c.parent == 't')" }`, "a.hcl:2: call is used as a whole"},
		"CEL joined":                {tool + `policy "p" { deny = "tool.name == 't' + ''" }`, "a.hcl:2: the name of the tool is compared with an expression"},
		"CEL joined before":         {tool + `policy "p" { deny = "'' + 't' == tool.name" }`, "a.hcl:2: the name of the tool is compared with an expression"},
		"CEL joined name":           {tool + `policy "p" { deny = "'' + tool.name == 't'" }`, "a.hcl:2: the name of the tool is compared with an expression"},
		"CEL joined list":           {tool + `policy "p" { deny = "tool.name in ['x'] + ['' + 't']" }`, "a.hcl:2: the name of the tool is compared with an expression"},
		"CEL caller of others": {tool + `policy "p" {
  tools = ["u"]
  deny = "(call).parent == 't'"
}`, "a.hcl:4: call is used as a whole"},
		"CEL escape of tool": {tool + `policy "p" { deny = "(tool).name == \"t\"" }`, "a.hcl:2: t may stand in a template"},
		"hook":               {tool + `hook "h" { run = "if (event.tool === 't') return;" }`, "a.hcl:2: the name t may be compared"},
		"computed member":    {caller + `"return tools[name]()" }`, "a.hcl:2: the name of the tool is computed here"},
		"passed on":          {caller + `"return f(tools)" }`, "a.hcl:2: the name of the tool is computed here, or tools is passed on"},
		"shadowed":           {caller + `"const tools = x; return tools.t();" }`, "a.hcl:2: the name of the tool is computed here"},
		"parameter":          {caller + `"const f = (a, tools: any) => tools.t();" }`, "a.hcl:2: the name of the tool is computed here"},
		"syntax error":       {caller + `"return tools.t('" }`, "a.hcl:2: this script has a syntax error"},
		"computed script":    {caller + `"return tools.${local.x} + t" }`, "a.hcl:2: t stands in a computed script"},
		"context passed on":  {caller + "file(\"x.js\") }\n-- x.js --\nexport default (input, ctx) => help(ctx);\n", "x.js:1: the context is passed on"},
		"import":             {caller + "file(\"x.js\") }\n-- x.js --\nimport './y.ts';\n-- y.ts --\nf(tools)\n", "y.ts:1: the name of the tool is computed"},

		"code of a test": {tool + "test \"x\" {\n  tool = \"run_code\"\n  input = { code = \"return t()\" }\n}", "a.hcl:4: the test gives run_code a text with the name t"},

		"input as a whole":      {input + `"return JSON.stringify(input)" }`, "a.hcl:2: the input is used as a whole"},
		"input computed":        {input + `"return input[key]" }`, "a.hcl:2: the input is used as a whole here, or its member is computed"},
		"input rest":            {input + `"const { ...all } = input;" }`, "a.hcl:2: the members are computed"},
		"input parameter":       {input + `"return [].map((x, input: any) => input.a);" }`, "a.hcl:2: the input is used as a whole"},
		"input nested":          {input + `"const { b: { a } = input } = x;" }`, "a.hcl:2: the input is used as a whole"},
		"input imported":        {input + "file(\"x.js\") }\n-- x.js --\nimport './y.ts';\n-- y.ts --\nreturn input.a;\n", "y.ts:1: this file is imported"},
		"CEL args":              {noRun + `policy "p" { deny = "size(args) == 1" }`, "a.hcl:2: all arguments are used here"},
		"CEL computed":          {noRun + `policy "p" { deny = "args[vars.x] == 1" }`, "a.hcl:2: all arguments are used here"},
		"CEL escape":            {noRun + `policy "p" { deny = "args.a == \"x\"" }`, "a.hcl:2: a stands in a template or behind an escape"},
		"CEL of other tools":    {noRun + "tool \"u\" { input \"a\" { type = string } }\npolicy \"p\" { deny = \"args.a == ''\" }", "a.hcl:3: args.a is here an argument of other tools"},
		"test computed":         {noRun + "test \"x\" {\n  tool = \"t\"\n  input = merge({}, local.x)\n}", "a.hcl:4: the input of the test is computed"},
		"test key computed":     {noRun + "test \"x\" {\n  tool = \"t\"\n  input = { (local.a) = 1 }\n}", "a.hcl:4: a key of the input is computed"},
		"call spread":           {calls + `"return tools.t({ ...x })" }`, "a.hcl:3: the members are computed"},
		"call with a variable":  {calls + `"return tools.t(x)" }`, "a.hcl:3: the arguments of the call are computed"},
		"call without a call":   {calls + `"return [x].map(tools.t)" }`, "a.hcl:3: the arguments of the call are computed"},
		"call of computed tool": {calls + `"return tools[x](y)" }`, "a.hcl:3: the name of the tool is computed"},
		"hook of input":         {noRun + `hook "h" { run = "return event.args.a;" }`, "a.hcl:2: the hook may read the input a"},
	} {
		t.Run(name, func(t *testing.T) {
			files, before := map[string]string{}, `tool "`
			if strings.Contains(test.text, `input "a"`) && !strings.HasPrefix(test.text, caller) {
				before = `input "`
			}
			for _, f := range txtar.Parse([]byte("-- a.hcl --\n" + test.text)).Files {
				files[f.Name] = string(f.Data)
			}
			if _, outcome := renameIn(t, files, "a.hcl", before, "new"); !strings.Contains(outcome, test.want) {
				t.Errorf("%s, want %s", outcome, test.want)
			}
		})
	}
}
