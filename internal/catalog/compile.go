package catalog

import (
	"crypto/sha256"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/scripting"
)

// compile compiles the definitions of all files, or takes them from the cache,
// and leaves them in the order of the files.
func (b *Builder) compile(defined []*hclfile.Definitions, found *build) {
	next := cache{
		env: b.cache.env, vars: b.cache.vars,
		items: map[hclfile.Hash]*compiledItem{}, hooks: map[hclfile.Hash]*compiledHook{},
		policies: b.cache.policies,
	}
	var toolDefs []*hclfile.Tool
	hookDefs := pointers(found.config.Hooks)
	for _, d := range defined {
		toolDefs = append(toolDefs, pointers(d.Tools)...)
		hookDefs = append(hookDefs, pointers(d.Hooks)...)
	}
	c := &compiler{Builder: b, found: found}
	items := make([]*compiledItem, len(toolDefs))
	source.Parallel(len(toolDefs), func(i int) { items[i] = c.tool(toolDefs[i]) })
	hooks := make([]*compiledHook, len(hookDefs))
	source.Parallel(len(hookDefs), func(i int) { hooks[i] = c.hook(hookDefs[i]) })
	for i, compiled := range items {
		found.report(compiled.problems)
		found.items = append(found.items, compiled.item)
		if !compiled.problems.HasErrors() {
			next.items[toolDefs[i].Hash] = compiled
		}
	}
	for i, h := range hooks {
		if h != nil {
			next.hooks[hookDefs[i].Hash] = h
			found.report(h.warnings)
			found.hooks = append(found.hooks, h.hook)
		}
	}
	b.cache = next
}

// compiler compiles definitions, many at once.
type compiler struct {
	*Builder
	found *build
}

func (c *compiler) tool(def *hclfile.Tool) *compiledItem {
	if known := c.cache.items[def.Hash]; known != nil && c.tree.Unchanged(known.imports) {
		return known
	}
	item := itemOf(def)
	compiled := &compiledItem{item: item}
	compiled.problems = c.schemas(def, item)
	src := scripting.Source{Name: def.Name, Kind: scripting.Tool}
	names, closed := def.InputNames()
	if closed {
		src.Inputs = names
	}
	item.InputNames = names
	program, imports, more := c.program(src, def.Run, def.Grant)
	compiled.problems, compiled.imports = append(compiled.problems, more...), imports
	if !compiled.problems.HasErrors() {
		item.Body = &script{program: program, grants: grantsOf(def.Grant), ask: def.Grant.Ask}
		body := program.Hash()
		item.Key = sha256.Sum256(append(def.Hash[:], body[:]...))
	}
	return compiled
}

// itemOf returns what a tool block says, before anything in it is compiled.
func itemOf(def *hclfile.Tool) *Item {
	item := &Item{
		Name: def.Name, Title: def.Title, Labels: def.Labels, Timeout: def.Timeout, AskTimeout: def.AskTimeout, Idempotent: def.Idempotent,
		ReadOnly: def.ReadOnly, Destructive: def.Destructive, OpenWorld: def.OpenWorld,
		Sensitive: def.Sensitive, SensitiveOutput: def.SensitiveOutput, PolicySchema: def.PolicyInput(), Where: def.NameRange,
	}
	if def.HasDescription {
		item.Description = &def.Description
	}
	item.SetFacts()
	return item
}

// schemas compiles the schemas of a tool, and the inputs that the server fills in.
func (c *compiler) schemas(def *hclfile.Tool, item *Item) (problems diag.List) {
	var more diag.List
	item.Input, problems = schema.Compile(def.Input, def.InputRange, def.InputOrigin)
	if def.Output != nil {
		item.Output, more = schema.Compile(def.Output, def.OutputRange, def.OutputOrigin)
		problems = append(problems, more...)
	}
	for _, from := range def.From {
		expr, more := c.found.env.CompileFrom(from.Expr.Text, from.Schema)
		problems = append(problems, more...)
		compiled, more := schema.Compile(from.Schema, from.Range, nil)
		problems = append(problems, more...)
		item.From = append(item.From, From{Name: from.Name, Expr: expr, Schema: compiled})
	}
	return problems
}

func (c *compiler) hook(def *hclfile.Hook) *compiledHook {
	if known := c.cache.hooks[def.Hash]; known != nil && c.tree.Unchanged(known.imports) {
		return known
	}
	program, imports, problems := c.program(scripting.Source{Name: def.Name, Kind: scripting.Hook}, def.Run, def.Grant)
	if problems.HasErrors() {
		c.found.report(problems)
		return nil
	}
	h := &Hook{Phases: def.On, names: def.Tools, Hook: c.options.Runner.Hook(hooks.Definition{
		Name: def.Name, Timeout: def.Timeout, Program: program, HTTP: grantsOf(def.Grant),
	})}
	return &compiledHook{hook: h, warnings: problems, imports: imports}
}

// program compiles a body with what it is granted.
func (c *compiler) program(src scripting.Source, body hclfile.Body, granted grant.Set) (*scripting.Program, map[string]source.Hash, diag.List) {
	imports := map[string]source.Hash{}
	var mu sync.Mutex
	src.Text, src.Path, src.Vars, src.Trial = body.Text, body.Path, c.found.vars, c.options.Trial
	if src.Path == "" {
		src.Path = c.tree.Relative(body.Text.File())
	}
	src.Language = scripting.JS
	if body.Language == hclfile.TypeScript {
		src.Language = scripting.TS
	}
	for _, http := range granted.HTTP {
		src.Objects = append(src.Objects, scripting.Object{Kind: "http", Name: http.Name})
	}
	if granted.Ask != nil {
		for _, name := range append(granted.Ask.Names(), "ask") {
			src.Objects = append(src.Objects, scripting.Object{Kind: "ask", Name: name})
		}
	}
	src.Import = func(name string) ([]byte, error) {
		content, hash, err := c.tree.Open(name)
		mu.Lock()
		defer mu.Unlock()
		imports[name] = hash
		return content, err
	}
	program, problems := scripting.Compile(src)
	return program, imports, problems
}

func grantsOf(set grant.Set) map[string]grant.HTTP {
	grants := make(map[string]grant.HTTP, len(set.HTTP))
	for _, http := range set.HTTP {
		grants[http.Name] = http
	}
	return grants
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
