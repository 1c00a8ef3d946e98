package catalog

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// InGo is the name by which the operator knows what the embedding program has in Go: all of
// its policies together, and each of its hooks. Nothing in a file can have it.
const InGo = "(go)"

// ruleSet is the policies and limits of the files, and what is compiled of them: once for
// all items with the same inputs.
type ruleSet struct {
	env *policylang.Env
	// operators are the policies of the operator's file, and authors those of tool files;
	// goPolicies counts those of the embedding program.
	operators, authors []definition.Policy
	goPolicies         int
	// limits are the limit blocks, the operator's first, and counted the same as they are
	// counted.
	limits   []*definition.Limit
	counted  []*ratelimit.Limit
	known    compiledRules
	policies *soundRules[policylang.Policy]
	keys     *soundRules[policylang.Key]
}

type compiledRules struct {
	policies map[ruleKey]*policylang.Policy
	keys     map[ruleKey]*policylang.Key
}

func (b *Builder) rulesOf(found *build) *ruleSet {
	r := &ruleSet{
		env: found.env, operators: found.config.Policies, authors: found.policies, goPolicies: b.options.GoPolicies, known: b.cache.rules,
		limits:   slices.Concat(pointers(found.config.RateLimits), pointers(found.limits)),
		policies: newSoundRules[policylang.Policy](b.maxPolicies), keys: newSoundRules[policylang.Key](b.maxPolicies),
	}
	for i, def := range r.limits {
		r.counted = append(r.counted, limitOf(def, i < len(found.config.RateLimits)))
	}
	return r
}

// fork returns the same rules, for more items: what is compiled for these leaves r as it is.
func (r *ruleSet) fork() *ruleSet {
	more := *r
	more.policies, more.keys = r.policies.fork(), r.keys.fork()
	return &more
}

func (r *ruleSet) compiled() compiledRules { return compiledRules{r.policies.all(), r.keys.all()} }

// bindAll binds entries, many at once, and returns what is wrong with each. From the entry
// full on there is no room for more rules; full is the number of entries where there is.
// Which entries that are is the same each time.
func bindAll[T any](s *soundRules[T], entries []*Entry, rules int, bind func(*Entry) diag.List) (found []diag.List, full int) {
	found = make([]diag.List, len(entries))
	if s.room() >= len(entries)*rules {
		loader.Parallel(len(entries), func(i int) { found[i] = bind(entries[i]) })
		return found, len(entries)
	}
	for i, e := range entries {
		if found[i] = bind(e); s.room() < 0 {
			found[i] = nil
			return found, i
		}
	}
	return found, len(entries)
}

// each binds entries, many at once, and returns what is wrong; tooMany is what there is no
// room for more of, and advice what to do then.
func each[T any](k *linker, s *soundRules[T], entries []*Entry, bind func(*Entry) diag.List, tooMany, advice string) diag.List {
	found := make([]diag.List, len(entries))
	loader.Parallel(len(entries), func(i int) { found[i] = bind(entries[i]) })
	if s.room() < 0 {
		summary := fmt.Sprintf(tooMany, k.maxPolicies)
		found = append(found, diag.List{{Code: "too-many", Range: diag.Range{File: k.options.ToolsPath}, Summary: summary, Detail: advice}})
	}
	return slices.Concat(found...)
}

// misfits returns what keeps the rules from tools that mcpd.lock accepts, as far as there is
// room for more of them.
func (r *ruleSet) misfits(accepted []*Entry) diag.List {
	policies, _ := bindAll(r.policies, accepted, len(r.operators)+len(r.authors), r.bindPolicies)
	keys, _ := bindAll(r.keys, accepted, len(r.limits), r.bindLimits)
	return errorsOf(slices.Concat(append(policies, keys...)...))
}

// checkIdle compiles policies that cover no item, so that their mistakes show.
func (k *linker) checkIdle(policies []definition.Policy, entries []*Entry) {
	for i := range policies {
		p := &policies[i]
		if !slices.ContainsFunc(entries, func(e *Entry) bool { return covers(p.Targets, e.Kind, e.Name) }) {
			k.found.report(k.found.env.CompileAny(sourceOf(p)))
		}
	}
}

// bindPolicies gives an entry its policies, in the order in which they are asked: the
// operator's, those in Go, those of tool files. It returns what is wrong with them.
func (r *ruleSet) bindPolicies(e *Entry) (found diag.List) {
	schemaHash := schemaHashOf(e)
	for i := range r.operators {
		found = append(found, r.bind(e, &r.operators[i], true, schemaHash)...)
	}
	if r.goPolicies > 0 {
		e.Rules = append(e.Rules, Policy{Name: InGo})
	}
	for i := range r.authors {
		found = append(found, r.bind(e, &r.authors[i], false, schemaHash)...)
	}
	return found
}

func (r *ruleSet) bind(e *Entry, p *definition.Policy, operator bool, schemaHash loader.Hash) diag.List {
	if !covers(p.Targets, e.Kind, e.Name) || r.policies.room() < 0 {
		return nil
	}
	if p.OnResult {
		schemaHash = sha256.Sum256(append(schemaHash[:], rawOf(e.Output)...))
	}
	key := ruleKey{p.Hash, schemaHash}
	compiled, problems := r.policies.compile(key, func() (*policylang.Policy, diag.List) {
		if known := r.known.policies[key]; known != nil {
			return known, nil
		}
		return r.env.Compile(sourceOf(p), toolOf(e))
	})
	if problems.HasErrors() {
		return problems
	}
	rule := Policy{Name: p.Name, Compiled: compiled, Disclose: p.Disclose, Where: p.NameRange, Operator: operator, Allows: p.Allow != nil, Asks: p.Approval != nil}
	if p.OnResult {
		rule.ReadsContent = compiled.ReadsContent()
		e.ResultRules = append(e.ResultRules, rule)
	} else {
		e.Rules = append(e.Rules, rule)
	}
	return problems
}

// toolOf is what policies and keys of an item are compiled against.
func toolOf(e *Entry) policylang.Tool {
	return policylang.Tool{Kind: e.Kind.String(), Name: e.Name, Schema: e.PolicySchema, Result: rawOf(e.Output), Later: e.Offer.later(), Range: e.Where}
}

// schemaHashOf tells items apart that policies and keys are compiled for apart.
func schemaHashOf(e *Entry) loader.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "%s%q", e.PolicySchema, e.Offer.later()))
}

func sourceOf(p *definition.Policy) policylang.Source {
	return policylang.Source{
		Name: p.Name, OnResult: p.OnResult, When: textOf(p.When), Allow: textOf(p.Allow), Deny: textOf(p.Deny), Approval: textOf(p.Approval),
		Reason: p.Reason, ReasonExpr: textOf(p.ReasonExpr), Range: p.NameRange,
	}
}

func textOf(body *definition.Body) *diag.Text {
	if body == nil {
		return nil
	}
	return &body.Text
}

// standing are the bounds of calls whose definitions say none. Zero members but
// those of time bound nothing, or leave it to the executor.
type standing struct {
	call, hook     time.Duration
	memory, output int64
	concurrency    int
}

// operators returns what stands for what the operator's file defines.
func operators(c *definition.Config) standing {
	return standing{call: definition.DefaultTimeout, hook: definition.DefaultHookTimeout, memory: c.Limits.Memory}
}

// authors returns what stands for what tool files define: of each bound the
// default, or the ceiling where that is less.
func authors(c *definition.Config) standing {
	s := operators(c)
	if c.Ceiling == nil {
		return s
	}
	most := c.Ceiling.Bounds
	if most.Timeout > 0 {
		s.call, s.hook = min(most.Timeout, s.call), min(most.Timeout, s.hook)
	}
	if most.Memory > 0 {
		s.memory = min(most.Memory, cmp.Or(s.memory, definition.DefaultMemory))
	}
	if most.Output > 0 {
		s.output = min(most.Output, definition.DefaultOutput)
	}
	s.concurrency = most.Concurrency
	return s
}

// bound takes over what a definition says of its calls, and what stands where it
// says nothing.
func (s standing) bound(i *Item, b definition.Bounds) {
	i.Timeout = b.Timeout
	if _, written := b.Ranges["timeout"]; !written {
		i.Timeout = s.call
	}
	i.Bounds = scripting.Limits{Memory: cmp.Or(b.Memory, s.memory), Output: int(cmp.Or(b.Output, s.output))}
	i.Concurrency = cmp.Or(b.Concurrency, s.concurrency)
}

// run returns the bounds of a run of a hook.
func (s standing) run(h *definition.Hook) (time.Duration, scripting.Limits) {
	timeout := h.Timeout
	if h.TimeoutRange == (diag.Range{}) {
		timeout = s.hook
	}
	return timeout, scripting.Limits{Memory: s.memory, Output: int(s.output)}
}

// addOwnLimits gives every entry that bounds how many of its calls run at once a
// limit of its own, which is asked last of all.
func (c *Catalog) addOwnLimits(entries []*Entry) {
	for _, e := range entries {
		if e.Concurrency == 0 {
			continue
		}
		own := &ratelimit.Limit{
			// The blank keeps it apart from limit blocks, whose names have none.
			ID:          ratelimit.ID{Name: e.Kind.String() + " " + e.Name},
			Concurrency: e.Concurrency, Local: true,
		}
		e.Limits = append(e.Limits, Limit{Limit: own})
		c.OwnLimits = append(c.OwnLimits, own)
	}
}

// places returns what grants of files and programs are judged by.
func (b *Builder) places(roots *loader.Roots) configcheck.Places {
	p := configcheck.Places{Tools: loader.Path(b.options.Tools), Config: loader.Path(b.options.Config), Find: roots.Find, Program: roots.Program, NoDriver: b.options.NoDriver}
	if state, err := filepath.Abs(b.options.StatePath); err == nil && b.options.StatePath != "" {
		p.State = filepath.Dir(state)
	}
	if b.options.LookupEnv != nil {
		p.Home, _ = b.options.LookupEnv("HOME")
	}
	return p
}

// led returns grants with the files, folders and programs that their paths lead to now: the
// brokers open and run nothing else.
func (f *build) led(granted grant.Set) grant.Set {
	granted.FS, granted.Exec, granted.SQL = slices.Clone(granted.FS), slices.Clone(granted.Exec), slices.Clone(granted.SQL)
	for i := range granted.FS {
		granted.FS[i].Real, _ = f.roots.Find(granted.FS[i].Root)
	}
	for i := range granted.SQL {
		if granted.SQL[i].Path != "" {
			granted.SQL[i].Real, _ = f.roots.Find(granted.SQL[i].Path)
		}
	}
	for i := range granted.Exec {
		granted.Exec[i].Real, _ = f.roots.Find(granted.Exec[i].Path)
	}
	return granted
}

// ledFrom calls yield with each path in grants, and with the place that it led to.
func ledFrom(granted []grant.Set, yield func(path, real string)) {
	for i := range granted {
		for _, g := range granted[i].FS {
			yield(g.Root, g.Real)
		}
		for _, g := range granted[i].SQL {
			yield(g.Path, g.Real) // both are empty of one that is no file
		}
	}
	for i := range granted {
		for _, g := range granted[i].Exec {
			yield(g.Path, g.Real)
		}
	}
}

// moved reports whether a path leads elsewhere than when its grant was compiled: what was
// compiled with it is compiled again.
func (f *build) moved(granted ...grant.Set) (moved bool) {
	ledFrom(granted, func(path, real string) {
		if path != "" && !moved {
			now, _ := f.roots.Find(path)
			moved = now != real
		}
	})
	return moved
}

// linkedRoots tells where paths in grants lead that pass links: a snapshot that differs in
// that alone is another.
func (f *build) linkedRoots() (told []byte) {
	ledFrom(f.granted, func(path, real string) {
		if path != real {
			told = append(append(told, real...), 0)
		}
	})
	return told
}
