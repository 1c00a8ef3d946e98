package catalog

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/policylang"
)

// InGo is the name by which the operator knows what the embedding program has in Go: all of
// its policies together, and each of its hooks. Nothing in a file can have it.
const GoName = "(go)"

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
	policies *ruleTable[policylang.Policy]
	keys     *ruleTable[policylang.Key]
}

func (b *Builder) rulesOf(found *build) *ruleSet {
	r := &ruleSet{
		env: found.env, operators: found.config.Policies, authors: found.policies, goPolicies: b.options.GoPolicies, known: b.cache.rules,
		limits:   slices.Concat(pointers(found.config.RateLimits), pointers(found.limits)),
		policies: newRuleTable[policylang.Policy](b.maxPolicies), keys: newRuleTable[policylang.Key](b.maxPolicies),
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
func bindAll[T any](s *ruleTable[T], entries []*Entry, rules int, bind func(*Entry) diag.List) (found []diag.List, full int) {
	found = make([]diag.List, len(entries))
	if s.remaining() >= len(entries)*rules {
		loader.Parallel(len(entries), func(i int) { found[i] = bind(entries[i]) })
		return found, len(entries)
	}
	for i, e := range entries {
		if found[i] = bind(e); s.remaining() < 0 {
			found[i] = nil
			return found, i
		}
	}
	return found, len(entries)
}

// each binds entries, many at once, and returns what is wrong; tooMany is what there is no
// room for more of, and advice what to do then.
func bindParallel[T any](k *linker, s *ruleTable[T], entries []*Entry, bind func(*Entry) diag.List, tooMany, advice string) diag.List {
	found := make([]diag.List, len(entries))
	loader.Parallel(len(entries), func(i int) { found[i] = bind(entries[i]) })
	if s.remaining() < 0 {
		summary := fmt.Sprintf(tooMany, k.maxPolicies)
		found = append(found, diag.List{{Code: "too-many", Range: diag.Range{File: k.options.ToolsPath}, Summary: summary, Detail: advice}})
	}
	return slices.Concat(found...)
}

// misfits returns what keeps the rules from tools that mcpd.lock accepts, as far as there is
// room for more of them.
func (r *ruleSet) lockedErrors(accepted []*Entry) diag.List {
	policies, _ := bindAll(r.policies, accepted, len(r.operators)+len(r.authors), r.bindPolicies)
	keys, _ := bindAll(r.keys, accepted, len(r.limits), r.bindLimits)
	return errorsOf(slices.Concat(append(policies, keys...)...))
}

// checkIdle compiles policies that cover no item, so that their mistakes show.
func (k *linker) compileUnused(policies []definition.Policy, entries []*Entry) {
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
		e.Rules = append(e.Rules, Policy{Name: GoName})
	}
	for i := range r.authors {
		found = append(found, r.bind(e, &r.authors[i], false, schemaHash)...)
	}
	return found
}

func (r *ruleSet) bind(e *Entry, p *definition.Policy, operator bool, schemaHash loader.Hash) diag.List {
	if !covers(p.Targets, e.Kind, e.Name) || r.policies.remaining() < 0 {
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
	return policylang.Tool{Kind: e.Kind.String(), Name: e.Name, Schema: e.PolicySchema, Result: rawOf(e.Output), Later: e.Offer.remainingArguments(), Range: e.Where}
}

// schemaHashOf tells items apart that policies and keys are compiled for apart.
func schemaHashOf(e *Entry) loader.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "%s%q", e.PolicySchema, e.Offer.remainingArguments()))
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

// soundRules are the compiled policies of one build, or the keys of its limits,
// each of which serves all items with the same inputs. It is safe for concurrent
// use. What has mistakes or warnings is not kept: these speak of one item, and
// are told again by the next build.
type ruleTable[T any] struct {
	max int // fixed at creation

	mu    sync.Mutex
	byKey map[ruleKey]*ruleSlot[T]
	// distinct are all that were compiled. One that does not read args is the
	// same for all items.
	distinct map[*T]struct{}
	// mistaken counts what could not be compiled.
	failed int
}

// maxPolicies bounds the compiled policies of one build, and the compiled keys of
// limits, and with them its time and memory: files that are small define two
// thousand tools and as many policies, each of which reads the args of each.
const maxPolicies = 50_000

type ruleSlot[T any] struct {
	once sync.Once
	rule *T
}

func newRuleTable[T any](most int) *ruleTable[T] {
	return &ruleTable[T]{max: most, byKey: map[ruleKey]*ruleSlot[T]{}, distinct: map[*T]struct{}{}}
}

// fork returns rules that share what is compiled so far.
func (s *ruleTable[T]) fork() *ruleTable[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ruleTable[T]{max: s.max, byKey: maps.Clone(s.byKey), distinct: maps.Clone(s.distinct), failed: s.failed}
}

// room is how many more may be compiled; below zero more were than the bound allows.
func (s *ruleTable[T]) remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.max - len(s.distinct) - s.failed
}

func (s *ruleTable[T]) compile(key ruleKey, compile func() (*T, diag.List)) (rule *T, problems diag.List) {
	known := s.slot(key)
	first := false
	known.once.Do(func() {
		first = true
		if rule, problems = s.record(compile()); len(problems) == 0 {
			known.rule = rule
		}
	})
	switch {
	case first:
		return rule, problems
	case known.rule != nil:
		return known.rule, nil
	default:
		return s.record(compile())
	}
}

func (s *ruleTable[T]) record(rule *T, problems diag.List) (*T, diag.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rule == nil {
		s.failed++
	} else {
		s.distinct[rule] = struct{}{}
	}
	return rule, problems
}

func (s *ruleTable[T]) slot(key ruleKey) *ruleSlot[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byKey[key]
	if known == nil {
		known = &ruleSlot[T]{}
		s.byKey[key] = known
	}
	return known
}

// all returns what is kept, once nothing is compiled any more.
func (s *ruleTable[T]) all() map[ruleKey]*T {
	all := make(map[ruleKey]*T, len(s.byKey))
	for key, known := range s.byKey {
		if known.rule != nil {
			all[key] = known.rule
		}
	}
	return all
}
