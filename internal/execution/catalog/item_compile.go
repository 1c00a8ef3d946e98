package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

// compile compiles the definitions of all files, or takes them from the cache, and adds them in the
// order of the files.
func (b *Builder) compile(defined []*definition.Definitions, state *buildState) {
	if b.cache.authors != state.authors || b.cache.operators != state.operators {
		b.cache.items, b.cache.hooks = nil, nil
	}
	next := buildCache{
		env: b.cache.env, vars: b.cache.vars, authors: state.authors, operators: state.operators,
		items: make(map[definition.Hash]*compiledItem, len(b.cache.items)), hooks: map[definition.Hash]*compiledHook{},
		rules: b.cache.rules,
	}
	c := &compiler{Builder: b, state: state}
	jobs := c.jobs(defined)
	hookDefs := pointers(state.config.Hooks)
	for _, d := range defined {
		hookDefs = append(hookDefs, pointers(d.Hooks)...)
	}
	items := make([]*compiledItem, len(jobs))
	loader.Parallel(len(jobs), func(i int) {
		if items[i] = b.cache.items[jobs[i].hash]; items[i] == nil || !b.tree.Unchanged(items[i].imports) || state.pathsMoved(items[i].granted...) {
			items[i] = c.definition(jobs[i].def)
		}
	})
	hooks := make([]*compiledHook, len(hookDefs))
	loader.Parallel(len(hookDefs), func(i int) {
		bounds := state.authors // the hooks of mcpd.hcl come first
		if i < len(state.config.Hooks) {
			bounds = state.operators
		}
		hooks[i] = c.hook(hookDefs[i], bounds)
	})
	state.items = slices.Grow(state.items, len(items))
	for i, compiled := range items {
		state.report(compiled.problems)
		state.items = append(state.items, compiled.item)
		state.granted = append(state.granted, compiled.granted...)
		if !compiled.problems.HasErrors() {
			next.items[jobs[i].hash] = compiled
		}
	}
	for i, h := range hooks {
		if h != nil {
			next.hooks[hookDefs[i].Hash] = h
			state.report(h.warnings)
			state.hooks = append(state.hooks, h.hook)
			state.granted = append(state.granted, h.granted)
		}
	}
	b.cache = next
}

// compileJob is a definition to compile: a pointer to a definition, or a [folderFile].
type compileJob struct {
	hash definition.Hash
	def  any
}

// jobs returns the definitions to compile, in the order of the files. It reads the files of folder
// blocks; each file is a job.
func (c *compiler) jobs(defined []*definition.Definitions) []compileJob {
	jobs := make([]compileJob, 0, len(defined))
	for _, d := range defined {
		for i := range d.Tools {
			jobs = append(jobs, compileJob{d.Tools[i].Hash, &d.Tools[i]})
		}
		for i := range d.Resources {
			jobs = append(jobs, compileJob{d.Resources[i].Hash, &d.Resources[i]})
		}
		for i := range d.Folders {
			jobs = append(jobs, c.folder(&d.Folders[i])...)
		}
		for i := range d.Templates {
			jobs = append(jobs, compileJob{d.Templates[i].Hash, &d.Templates[i]})
		}
		for i := range d.Prompts {
			jobs = append(jobs, compileJob{d.Prompts[i].Hash, &d.Prompts[i]})
		}
	}
	return jobs
}

// definition compiles the definition of a [compileJob].
func (c *compiler) definition(def any) *compiledItem {
	switch def := def.(type) {
	case *definition.Tool:
		return c.tool(def)
	case *definition.Resource:
		return c.resource(def)
	case *definition.Template:
		return c.template(def)
	case *definition.Prompt:
		return c.prompt(def)
	default:
		file := def.(folderFile)
		return c.file(file.folder, file.name, file.content, file.hash)
	}
}

// compiler compiles definitions in parallel.
type compiler struct {
	*Builder
	state *buildState
	// compiled are the schemas of this build by [schemaKey]. Many tools have the same ones.
	compiled sync.Map
}

// schemaKey has everything that a schema without problems depends on.
type schemaKey struct {
	numbers      schema.Numbers
	bigInts, raw string
}

// schema compiles a schema, or returns the equal schema of another definition.
func (c *compiler) schema(reader schema.Reader, raw json.RawMessage, where diag.Range, origin schema.Positions) (*schema.Schema, diag.List) {
	key := schemaKey{reader.Numbers, strings.Join(reader.BigInts, "\x00"), string(raw)}
	if known, ok := c.compiled.Load(key); ok {
		return known.(*schema.Schema), nil
	}
	compiled, problems := schema.CompileFor(reader, raw, where, origin)
	if len(problems) > 0 { // they have positions
		return compiled, problems
	}
	known, _ := c.compiled.LoadOrStore(key, compiled)
	return known.(*schema.Schema), nil
}

// itemCompiler compiles the definition of one item.
type itemCompiler struct {
	*compiler
	*compiledItem
	key hash.Hash
	// programs are the compiled scripts so far; nil for a script with errors.
	programs []*scripting.Program
}

func (c *compiler) newItem(item *Item, meaning definition.Hash) *itemCompiler {
	ic := &itemCompiler{compiler: c, compiledItem: &compiledItem{item: item, imports: map[string]loader.Hash{}}, key: sha256.New()}
	ic.key.Write(meaning[:])
	return ic
}

// handler compiles a script of the definition. It returns nil for a script with errors, which it
// reports unless the decoder has.
func (c *itemCompiler) handler(src scripting.Source, body definition.Code, granted grant.Set) Handler {
	if body.Text.Body() == "" {
		c.programs = append(c.programs, nil)
		return nil
	}
	program, imports, problems := c.program(src, body, granted)
	maps.Copy(c.imports, imports)
	c.programs = append(c.programs, program)
	if c.problems = append(c.problems, problems...); problems.HasErrors() {
		return nil
	}
	meaning := program.SemanticHash()
	c.key.Write(meaning[:])
	granted = c.state.resolveGrants(granted)
	if !granted.IsEmpty() {
		c.granted = append(c.granted, granted)
	}
	return &scriptHandler{program: program, grants: host.NewGrants(granted), ask: granted.Ask}
}

// finish returns the completed item.
func (c *itemCompiler) finish(granted grant.Set, ranges map[string]diag.Range) *compiledItem {
	c.problems = append(c.problems, unusedGrants(granted, ranges, c.programs)...)
	c.item.Key = [32]byte(c.key.Sum(nil))
	c.item.Finalize()
	c.problems = append(c.problems, c.listable(c.item)...)
	return c.compiledItem
}

// rejectsNull reports whether the type of an output schema excludes null, the result of a script that
// returns nothing.
func rejectsNull(schema json.RawMessage) bool {
	var one struct{ Type string }
	if json.Unmarshal(schema, &one) == nil {
		return one.Type != "" && one.Type != "null"
	}
	var several struct{ Type []string }
	return json.Unmarshal(schema, &several) == nil && len(several.Type) > 0 && !slices.Contains(several.Type, "null")
}

func (c *compiler) tool(def *definition.Tool) *compiledItem {
	item := itemOf(def)
	c.state.authors.applyTo(item, def.Bounds)
	k := c.newItem(item, def.Semantic)
	k.problems = c.schemas(def, item)
	src := scripting.Source{Name: def.Name, Kind: scripting.Tool, MustReturn: rejectsNull(def.Output)}
	names, closed := def.InputNames()
	if closed {
		src.Inputs = names
	}
	item.InputNames, src.BigInts, src.BigIntResult = names, def.BigInts, len(def.BigIntOutput) > 0
	body := k.handler(src, def.Run, def.Grant)
	if def.Cache != nil && body != nil {
		body = k.withCache(def, body)
	}
	var dryRun Handler
	if def.DryRun != nil {
		dryRun = k.handler(src, *def.DryRun, def.Grant)
	}
	if !k.problems.HasErrors() {
		item.Handler, item.DryRun = body, dryRun
	}
	return k.finish(def.Grant, def.GrantRanges)
}

// itemOf returns the item of a tool block, before its parts are compiled.
func itemOf(def *definition.Tool) *Item {
	item := &Item{
		Kind: Tools, Name: def.Name, Address: def.Name, Where: def.NameRange,
		About: About{
			Title: def.Title, Icons: def.Icons, Labels: def.Labels,
			Idempotent: def.Idempotent, ReadOnly: def.ReadOnly, Destructive: def.Destructive, OpenWorld: def.OpenWorld,
		},
		Schemas:   Schemas{Declared: def.Declared, Sensitive: def.Sensitive, SensitiveOutput: def.SensitiveOutput, PolicySchema: def.PolicyInput()},
		Allowance: Allowance{AskTimeout: def.AskTimeout, Task: Task{TTL: def.TaskTTL, Required: def.Task == definition.TaskRequired, AskFirst: def.AskFirst}},
	}
	if def.HasDescription {
		item.Description = &def.Description
	}
	return item
}

func (c *compiler) schemas(def *definition.Tool, item *Item) (problems diag.List) {
	var more diag.List
	item.Input, problems = c.schema(schema.Reader{Numbers: schema.ForScripts, BigInts: def.BigInts}, def.Input, def.InputRange, def.InputOrigin.At)
	if def.Output != nil {
		item.Output, more = c.schema(schema.Reader{BigInts: def.BigIntOutput}, def.Output, def.OutputRange, def.OutputOrigin.At)
		problems = append(problems, more...)
	}
	for _, from := range def.From {
		expr, more := c.state.env.CompileFrom(from.Expr.Text, from.Schema)
		problems = append(problems, more...)
		reader := schema.Reader{Numbers: schema.ForScripts, BigInts: inMember(def.BigInts, from.Name)}
		compiled, more := c.schema(reader, from.Schema, from.Range, nil)
		problems = append(problems, more...)
		item.From = append(item.From, FromInput{Name: from.Name, Expr: expr, Schema: compiled, Text: from.Expr.Text})
	}
	return problems
}

// inMember returns the pointers that lead into a member, relative to it.
func inMember(pointers []string, member string) (inner []string) {
	for _, pointer := range pointers {
		if rest, ok := strings.CutPrefix(pointer, "/"+member); ok && (rest == "" || rest[0] == '/') {
			inner = append(inner, rest)
		}
	}
	return inner
}

func (c *compiler) hook(def *definition.Hook, bounds callDefaults) *compiledHook {
	known := c.cache.hooks[def.Hash]
	if known != nil && c.tree.Unchanged(known.imports) && !c.state.pathsMoved(known.granted) {
		return known
	}
	if def.Run.Text.Body() == "" {
		return nil // the decoder has reported it
	}
	program, imports, problems := c.program(scripting.Source{Name: def.Name, Kind: scripting.Hook}, def.Run, def.Grant)
	if problems.HasErrors() {
		c.state.report(problems)
		return nil
	}
	problems = append(problems, unusedGrants(def.Grant, def.GrantRanges, []*scripting.Program{program})...)
	timeout, limits := bounds.hookLimits(def)
	granted := c.state.resolveGrants(def.Grant)
	runs := c.options.Runner.Hook(hooks.Spec{Name: def.Name, Timeout: timeout, Limits: limits, Program: program, Grants: host.NewGrants(granted)})
	return &compiledHook{hook: &Hook{Phases: def.On, targets: def.Targets, Hook: runs}, warnings: problems, imports: imports, granted: granted}
}

func (c *compiler) program(src scripting.Source, body definition.Code, granted grant.Set) (*scripting.Program, map[string]loader.Hash, diag.List) {
	imports := map[string]loader.Hash{}
	var mu sync.Mutex
	src.Text, src.Path, src.Vars, src.Trial = body.Text, body.Path, c.state.vars, c.options.Trial
	src.Transpiler = c.options.Transpiler
	if src.Path == "" {
		src.Path = c.tree.Relative(body.Text.File())
	}
	src.Language = scripting.JS
	if body.Language == definition.TypeScript {
		src.Language = scripting.TS
	}
	src.Objects = append(objectsOf(granted), c.functionsOf(granted)...)
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

func (c *compiler) functionsOf(set grant.Set) (objects []scripting.Object) {
	for _, m := range set.Modules {
		for _, name := range c.options.Modules.Functions(m.Name) {
			objects = append(objects, scripting.Object{Kind: "modules." + m.Name, Name: name})
		}
	}
	return objects
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// TestTarget returns the kind and address of the item that a test covers.
func TestTarget(test *definition.Test) (k Kind, target string) {
	switch {
	case test.Resource != "" && test.Complete != "":
		return Templates, test.Resource
	case test.Resource != "":
		return Resources, test.Resource
	case test.Prompt != "":
		return Prompts, test.Prompt
	}
	return Tools, test.Tool
}

// Tested reports whether test i of next has already passed in the serving catalog c, which may be
// nil, with the same item and policies.
func (c *Catalog) Tested(next *Catalog, i int) bool {
	return c != nil && c.Reload.RequireTests && c.SameTest(next, i)
}

// SelectTests returns the numbers of the tests that are wanted.
func (c *Catalog) SelectTests(wanted func(i int) bool) (selected []int) {
	for i := range c.Tests {
		if wanted(i) {
			selected = append(selected, i)
		}
	}
	return selected
}

// SameTest reports whether test i of next is in c, too, with the same item and policies.
func (c *Catalog) SameTest(next *Catalog, i int) bool {
	before := slices.IndexFunc(c.Tests, func(t definition.Test) bool { return t.Hash == next.Tests[i].Hash })
	if before < 0 {
		return false
	}
	onOld, oldTest, err := c.TestCatalog(before)
	onNow, nowTest, errNow := next.TestCatalog(i)
	if err != nil || errNow != nil || onOld.DenyByDefault != onNow.DenyByDefault || oldTest.Hash != nowTest.Hash {
		return false
	}
	old, now := onOld.entryOf(oldTest), onNow.entryOf(nowTest)
	return old != nil && now != nil && old.Item == now.Item &&
		samePolicies(old.Rules, now.Rules) && samePolicies(old.ResultRules, now.ResultRules)
}

// entryOf returns the entry that a test covers; nil if it does not exist.
func (c *Catalog) entryOf(test *definition.Test) *Entry {
	k, target := TestTarget(test)
	if k != Resources {
		return c.Entry(k, target)
	}
	e, _ := c.Read(target)
	return e
}

func samePolicies(a, b []Policy) bool {
	return slices.EqualFunc(a, b, func(a, b Policy) bool { return a.Compiled == b.Compiled })
}
