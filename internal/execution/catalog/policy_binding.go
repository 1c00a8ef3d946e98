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

// GoName is the name of the Go policies and Go hooks of the embedding program. No definition in a
// file can have it.
const GoName = "(go)"

// ruleSet has the policies and limits of the files in compiled form: once for all items with the
// same inputs.
type ruleSet struct {
	env *policylang.Env
	// operators are the policies of mcpd.hcl, and authors the policies of tool files. goPolicies counts
	// the Go policies.
	operators, authors []definition.Policy
	goPolicies         int
	// limits are the limit blocks, first from mcpd.hcl. counted are the same limits for the
	// store.
	limits   []*definition.Limit
	counted  []*ratelimit.Limit
	known    compiledRules
	policies *ruleTable[policylang.Policy]
	keys     *ruleTable[policylang.Key]
}

func (b *Builder) rulesOf(state *buildState) *ruleSet {
	r := &ruleSet{
		env: state.env, operators: state.config.Policies, authors: state.policies, goPolicies: b.options.GoPolicies, known: b.cache.rules,
		limits:   slices.Concat(pointers(state.config.RateLimits), pointers(state.limits)),
		policies: newRuleTable[policylang.Policy](b.maxPolicies), keys: newRuleTable[policylang.Key](b.maxPolicies),
	}
	for i, def := range r.limits {
		r.counted = append(r.counted, limitOf(def, i < len(state.config.RateLimits)))
	}
	return r
}

// fork returns a copy for more items; compiling for these does not affect r.
func (r *ruleSet) fork() *ruleSet {
	more := *r
	more.policies, more.keys = r.policies.fork(), r.keys.fork()
	return &more
}

func (r *ruleSet) compiled() compiledRules { return compiledRules{r.policies.all(), r.keys.all()} }

// bindAll binds entries in parallel, and returns the diagnostics of each. full is the number of
// entries that fit into the limit of compiled rules; it is deterministic.
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

// bindParallel binds entries in parallel, and returns the diagnostics. If the limit is exceeded, it
// reports tooMany with advice.
func bindParallel[T any](l *linker, s *ruleTable[T], entries []*Entry, bind func(*Entry) diag.List, tooMany, advice string) diag.List {
	found := make([]diag.List, len(entries))
	loader.Parallel(len(entries), func(i int) { found[i] = bind(entries[i]) })
	if s.remaining() < 0 {
		summary := fmt.Sprintf(tooMany, l.maxPolicies)
		found = append(found, diag.List{{Code: "too-many", Range: diag.Range{File: l.options.ToolsPath}, Summary: summary, Detail: advice}})
	}
	return slices.Concat(found...)
}

// lockedErrors returns the errors of policies and limits for accepted tools in mcpd.lock, within
// the limit of compiled rules.
func (r *ruleSet) lockedErrors(accepted []*Entry) diag.List {
	policies, _ := bindAll(r.policies, accepted, len(r.operators)+len(r.authors), r.bindPolicies)
	keys, _ := bindAll(r.keys, accepted, len(r.limits), r.bindLimits)
	return errorsOf(slices.Concat(append(policies, keys...)...))
}

// compileUnused compiles policies that cover no item, to report their errors.
func (l *linker) compileUnused(policies []definition.Policy, entries []*Entry) {
	for i := range policies {
		p := &policies[i]
		if !slices.ContainsFunc(entries, func(e *Entry) bool { return covers(p.Targets, e.Kind, e.Name) }) {
			l.state.report(l.state.env.CompileAny(sourceOf(p)))
		}
	}
}

// bindPolicies adds the policies of an entry in evaluation order: policies of mcpd.hcl, Go policies,
// and policies of tool files. It returns their diagnostics.
func (r *ruleSet) bindPolicies(e *Entry) (found diag.List) {
	hash := &schemaHash{entry: e}
	for i := range r.operators {
		found = append(found, r.bind(e, &r.operators[i], true, hash)...)
	}
	if r.goPolicies > 0 {
		e.Rules = append(e.Rules, Policy{Name: GoName})
	}
	for i := range r.authors {
		found = append(found, r.bind(e, &r.authors[i], false, hash)...)
	}
	return found
}

func (r *ruleSet) bind(e *Entry, p *definition.Policy, operator bool, hash *schemaHash) diag.List {
	if !covers(p.Targets, e.Kind, e.Name) || r.policies.remaining() < 0 {
		return nil
	}
	schema := hash.get()
	if p.OnResult {
		schema = sha256.Sum256(append(schema[:], rawOf(e.Output)...))
	}
	key := ruleKey{p.Hash, schema}
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

// toolOf returns the schema that policies and limit keys are compiled against.
func toolOf(e *Entry) policylang.Tool {
	return policylang.Tool{Kind: e.Kind.String(), Name: e.Name, Schema: e.PolicySchema, Result: rawOf(e.Output), Later: e.Offer.remainingArguments(), Range: e.Where}
}

// schemaHash is a hash that is equal for entries which share compiled policies and limit keys. It
// is computed for the first policy or limit that covers the entry.
type schemaHash struct {
	entry *Entry
	hash  loader.Hash
	known bool
}

func (h *schemaHash) get() loader.Hash {
	if !h.known {
		h.hash = sha256.Sum256(fmt.Appendf(nil, "%s%q", h.entry.PolicySchema, h.entry.Offer.remainingArguments()))
		h.known = true
	}
	return h.hash
}

func sourceOf(p *definition.Policy) policylang.Source {
	return policylang.Source{
		Name: p.Name, OnResult: p.OnResult, When: textOf(p.When), Allow: textOf(p.Allow), Deny: textOf(p.Deny), Approval: textOf(p.Approval),
		Reason: p.Reason, ReasonExpr: textOf(p.ReasonExpr), Range: p.NameRange,
	}
}

func textOf(body *definition.Code) *diag.Text {
	if body == nil {
		return nil
	}
	return &body.Text
}

// ruleTable has the compiled policies, or limit keys, of one build. Each one serves all items with
// the same inputs. It is safe for concurrent use. A rule with diagnostics is not cached: they
// belong to one item, and the next build reports them again.
type ruleTable[T any] struct {
	max int // fixed at creation

	mu    sync.Mutex
	byKey map[ruleKey]*ruleSlot[T]
	// distinct has all compiled rules. A rule that reads no args is the same for all items.
	distinct map[*T]struct{}
	// failed counts the rules that could not be compiled.
	failed int
}

// maxPolicies bounds the compiled policies of one build, and the compiled limit keys, and so its
// time and memory. Small files can define two thousand tools and as many policies that read the
// args of each.
const maxPolicies = 50_000

type ruleSlot[T any] struct {
	once sync.Once
	rule *T
}

func newRuleTable[T any](limit int) *ruleTable[T] {
	return &ruleTable[T]{max: limit, byKey: map[ruleKey]*ruleSlot[T]{}, distinct: map[*T]struct{}{}}
}

// fork returns a table that shares the rules compiled so far.
func (t *ruleTable[T]) fork() *ruleTable[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &ruleTable[T]{max: t.max, byKey: maps.Clone(t.byKey), distinct: maps.Clone(t.distinct), failed: t.failed}
}

// remaining returns how many more rules may be compiled; below zero if the limit was exceeded.
func (t *ruleTable[T]) remaining() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.max - len(t.distinct) - t.failed
}

func (t *ruleTable[T]) compile(key ruleKey, compile func() (*T, diag.List)) (rule *T, problems diag.List) {
	known := t.slot(key)
	first := false
	known.once.Do(func() {
		first = true
		if rule, problems = t.record(compile()); len(problems) == 0 {
			known.rule = rule
		}
	})
	switch {
	case first:
		return rule, problems
	case known.rule != nil:
		return known.rule, nil
	default:
		return t.record(compile())
	}
}

func (t *ruleTable[T]) record(rule *T, problems diag.List) (*T, diag.List) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rule == nil {
		t.failed++
	} else {
		t.distinct[rule] = struct{}{}
	}
	return rule, problems
}

func (t *ruleTable[T]) slot(key ruleKey) *ruleSlot[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	if known == nil {
		known = &ruleSlot[T]{}
		t.byKey[key] = known
	}
	return known
}

// all returns the cached rules, after compiling has ended.
func (t *ruleTable[T]) all() map[ruleKey]*T {
	all := make(map[ruleKey]*T, len(t.byKey))
	for key, known := range t.byKey {
		if known.rule != nil {
			all[key] = known.rule
		}
	}
	return all
}
