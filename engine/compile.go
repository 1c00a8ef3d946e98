package engine

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// compileCache holds what earlier loads compiled. Entries that a load does not
// use are dropped, so that the cache never outgrows the files.
type compileCache struct {
	env      *policylang.Env
	vars     string
	tools    map[hclfile.Hash]*compiledTool
	hooks    map[hclfile.Hash]*compiledHook
	policies map[policyKey]*policylang.Policy
}

// compiledTool is a tool, what is wrong with it, and the files that its body
// imports. A tool with mistakes is still linked, so that what others say of it
// is checked in the same load; the mistakes keep the snapshot from serving.
type compiledTool struct {
	tool     *Tool
	problems diag.List
	imports  map[string]source.Hash
}

type compiledHook struct {
	hook     *hook
	warnings diag.List
	imports  map[string]source.Hash
}

// compile compiles the tools and hooks of all files, or takes them from the
// cache, and leaves them in the order of the files.
func (l *loader) compile(defined []*hclfile.Definitions, found *loading) {
	next := compileCache{
		env: l.cache.env, vars: l.cache.vars,
		tools: map[hclfile.Hash]*compiledTool{}, hooks: map[hclfile.Hash]*compiledHook{},
		policies: l.cache.policies,
	}
	var toolDefs []*hclfile.Tool
	hookDefs := pointers(found.config.Hooks)
	for _, d := range defined {
		toolDefs = append(toolDefs, pointers(d.Tools)...)
		hookDefs = append(hookDefs, pointers(d.Hooks)...)
	}
	c := &compiler{loader: l, found: found}
	tools := make([]*compiledTool, len(toolDefs))
	source.Parallel(len(toolDefs), func(i int) { tools[i] = c.tool(toolDefs[i]) })
	hooks := make([]*compiledHook, len(hookDefs))
	source.Parallel(len(hookDefs), func(i int) { hooks[i] = c.hook(hookDefs[i]) })
	for i, t := range tools {
		found.report(t.problems)
		found.tools = append(found.tools, t.tool)
		if !t.problems.HasErrors() {
			next.tools[toolDefs[i].Hash] = t
		}
	}
	for i, h := range hooks {
		if h != nil {
			next.hooks[hookDefs[i].Hash] = h
			found.report(h.warnings)
			found.hooks = append(found.hooks, h.hook)
		}
	}
	l.cache = next
}

// compiler compiles definitions, many at once.
type compiler struct {
	*loader
	found *loading
}

func (c *compiler) tool(def *hclfile.Tool) *compiledTool {
	if known := c.cache.tools[def.Hash]; known != nil && c.tree.Unchanged(known.imports) {
		return known
	}
	compiled := &compiledTool{tool: &Tool{
		metadata: metadataOf(def), sensitive: def.Sensitive, sensitiveOutput: def.SensitiveOutput, where: def.NameRange, policySchema: def.PolicyInput(),
	}}
	t := compiled.tool
	t.facts = factsOf(t.metadata)
	var problems, more diag.List
	if t.input, more = schema.Compile(def.Input, def.InputRange, def.InputOrigin); len(more) > 0 {
		problems = append(problems, more...)
	}
	if def.Output != nil {
		t.output, more = schema.Compile(def.Output, def.OutputRange, def.OutputOrigin)
		problems = append(problems, more...)
	}
	problems = append(problems, c.from(def, t)...)
	src := scripting.Source{Name: def.Name, Kind: scripting.Tool}
	names, closed := def.InputNames()
	if closed {
		src.Inputs = names
	}
	t.inputs = names
	program, imports, more := c.program(src, def.Run, def.Grant)
	compiled.problems, compiled.imports = append(problems, more...), imports
	if !compiled.problems.HasErrors() {
		t.body = &script{program: program, grants: grantsOf(def.Grant)}
		body := program.Hash()
		t.key = sha256.Sum256(append(def.Hash[:], body[:]...))
	}
	return compiled
}

// from compiles the inputs that the server fills in.
func (c *compiler) from(def *hclfile.Tool, t *Tool) diag.List {
	var problems diag.List
	for _, from := range def.From {
		expr, more := c.found.env.CompileFrom(from.Expr.Text, from.Schema)
		problems = append(problems, more...)
		compiled, more := schema.Compile(from.Schema, from.Range, nil)
		problems = append(problems, more...)
		t.from = append(t.from, fromInput{name: from.Name, expr: expr, schema: compiled})
	}
	return problems
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

func (c *compiler) hook(def *hclfile.Hook) *compiledHook {
	if known := c.cache.hooks[def.Hash]; known != nil && c.tree.Unchanged(known.imports) {
		return known
	}
	program, imports, problems := c.program(scripting.Source{Name: def.Name, Kind: scripting.Hook}, def.Run, def.Grant)
	if problems.HasErrors() {
		c.found.report(problems)
		return nil
	}
	h := &hook{tools: def.Tools, Hook: c.runner.Hook(hooks.Definition{Name: def.Name, Timeout: def.Timeout, Program: program, HTTP: grantsOf(def.Grant)})}
	for _, phase := range def.On {
		h.on = append(h.on, Phase(phase))
	}
	return &compiledHook{hook: h, warnings: problems, imports: imports}
}

func metadataOf(def *hclfile.Tool) Metadata {
	m := Metadata{
		Name: def.Name, Title: def.Title, InputSchema: def.Input, OutputSchema: def.Output,
		Timeout: def.Timeout, Idempotent: def.Idempotent,
		ReadOnly: def.ReadOnly, Destructive: def.Destructive, OpenWorld: def.OpenWorld, Labels: def.Labels,
	}
	if def.HasDescription {
		m.Description = &def.Description
	}
	return m
}

func grantsOf(set grant.Set) map[string]grant.HTTP {
	grants := make(map[string]grant.HTTP, len(set.HTTP))
	for _, http := range set.HTTP {
		grants[http.Name] = http
	}
	return grants
}

// encode encodes plain data, which cannot fail.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		return orNull(nil)
	}
	return encoded
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
