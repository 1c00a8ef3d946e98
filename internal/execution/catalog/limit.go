package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/policylang"
)

// Limit is a limit of an item, with the expression of its key; a nil key counts all calls together.
type Limit struct {
	*ratelimit.Limit
	key *policylang.Key
}

// Charges returns the charges of a call. An error is for the operator; name is the limit with the
// key that failed.
func (e *Entry) Charges(ctx context.Context, facts policylang.Input) (charges []ratelimit.Charge, name string, err error) {
	charges = make([]ratelimit.Charge, len(e.Limits))
	for i, l := range e.Limits {
		charges[i].Limit, charges[i].MaxDuration = l.Limit, e.Timeout
		if charges[i].Key, err = l.keyOf(ctx, facts); err != nil {
			return nil, l.Name, err
		}
	}
	return charges, "", nil
}

// keyOf returns the key of a call, which is empty for a limit without a key.
func (l *Limit) keyOf(ctx context.Context, facts policylang.Input) (string, error) {
	if l.key == nil {
		return "", nil
	}
	text, err := l.key.Eval(ctx, facts)
	if err != nil {
		return "", err
	}
	if l.key.OfCaller() {
		// Principals of other kinds or issuers may have the same id.
		p := &facts.Caller.Principal
		text = string(p.Kind) + "\x00" + p.Issuer + "\x00" + text
	}
	return ratelimit.Key(text), nil
}

// LimitUse is how much of a bound of a limit block is in use. A block with a rate and a concurrency has
// two bounds.
type LimitUse struct {
	Name  string
	Where diag.Range
	// Kind is rate or concurrency, and Bound describes the bound.
	Kind, Bound string
	// Shared, Problem, Keys and Most are as in [ratelimit.Usage].
	Shared  bool
	Problem string
	Keys    int
	Most    []KeyUse
}

// KeyUse is the share of a bound that a key uses. The texts are what an operator may see of the key.
type KeyUse struct {
	ratelimit.KeyShare
	// AuthKind and Issuer describe the principal, if the key reads its id.
	AuthKind, Issuer string
	// Text is the value of the key, without sensitive variables. It is empty if it is hidden, as it may
	// contain arguments, is too long or is not known, and for a limit without a key.
	Text   string
	Hidden bool
}

// LimitUses returns how much of each limit block is in use, those nearest to their bound first, with at
// most n keys of each. A store that has only hashes of keys knows the keys of the principals, which are
// asked for at most once.
func (c *Catalog) LimitUses(ctx context.Context, counted ratelimit.Store, n int, principals func() []identity.Principal) (uses []LimitUse) {
	known := &knownKeys{catalog: c, principals: sync.OnceValue(principals)}
	usages := counted.Usage(c.base.rules.counted, n, func(l *ratelimit.Limit) iter.Seq[string] { return known.of(ctx, l) })
	for i, def := range c.base.rules.limits {
		l, usage := c.base.rules.counted[i], &usages[i]
		use := LimitUse{Name: l.Name, Where: def.NameRange, Shared: usage.Shared, Problem: usage.Problem, Keys: usage.Keys}
		if l.Rate.Calls > 0 {
			use.Kind, use.Bound, use.Most = "rate", fmt.Sprintf("%s, %d at once after a pause", l.Rate, l.Burst), c.keyUses(def, usage.Rate)
			uses = append(uses, use)
		}
		if l.Concurrency > 0 {
			use.Kind, use.Bound, use.Most = "concurrency", fmt.Sprintf("%d running", l.Concurrency), c.keyUses(def, usage.Concurrency)
			uses = append(uses, use)
		}
	}
	nearest := func(u LimitUse) float64 {
		if len(u.Most) == 0 {
			return -1
		}
		return u.Most[0].Share
	}
	slices.SortStableFunc(uses, func(a, b LimitUse) int { return cmp.Compare(nearest(b), nearest(a)) })
	return uses
}

// knownKeys has the keys that calls of known principals have.
type knownKeys struct {
	catalog    *Catalog
	principals func() []identity.Principal
	// limits are the limits of all entries; nil before the first use.
	limits map[ratelimit.ID]*Limit
}

// of returns the keys of a limit. There are none if the key may read arguments. A key that reads other facts
// of a call is wrong or missing.
func (k *knownKeys) of(ctx context.Context, l *ratelimit.Limit) iter.Seq[string] {
	return func(yield func(string) bool) {
		i := slices.Index(k.catalog.base.rules.counted, l)
		if i < 0 {
			return
		}
		def := k.catalog.base.rules.limits[i]
		if def.Key == nil {
			yield("")
			return
		}
		if keyOf(def).MayReadArgs() {
			return
		}
		limit := k.bound(l)
		if limit == nil {
			return
		}
		for _, p := range k.principals() {
			key, err := limit.keyOf(ctx, policylang.Input{Caller: identity.Caller{Principal: p}})
			if err == nil && !yield(key) {
				return
			}
		}
	}
}

// bound returns a limit with its compiled key, or nil if it covers no item.
func (k *knownKeys) bound(l *ratelimit.Limit) *Limit {
	if k.limits == nil {
		k.limits = map[ratelimit.ID]*Limit{}
		for _, entries := range k.catalog.Entries {
			for _, e := range entries {
				for i := range e.Limits {
					k.limits[e.Limits[i].ID] = &e.Limits[i]
				}
			}
		}
	}
	return k.limits[l.ID]
}

// keyUses describes keys that [Entry.Charges] returned for a limit.
func (c *Catalog) keyUses(def *definition.Limit, shares []ratelimit.KeyShare) []KeyUse {
	uses := make([]KeyUse, len(shares))
	for i, s := range shares {
		use := &uses[i]
		use.KeyShare = s
		if s.Rest || def.Key == nil && !s.Hashed {
			continue
		}
		if use.Hidden = s.Hashed || !utf8.ValidString(s.Key); use.Hidden {
			continue // the hash of a key that is not known, or of a long key
		}
		use.Text = s.Key
		if _, ofCaller := policylang.Reads(def.Key.Text, "principal", "id"); ofCaller {
			use.AuthKind, use.Text, _ = strings.Cut(use.Text, "\x00")
			use.Issuer, use.Text, _ = strings.Cut(use.Text, "\x00")
		}
		use.Text = c.Sensitive.Hide(use.Text)
		if use.Hidden = keyOf(def).MayReadArgs(); use.Hidden {
			use.Text = ""
		}
	}
	return uses
}

func limitOf(def *definition.Limit, operator bool) *ratelimit.Limit {
	key := ""
	if def.Key != nil {
		key = def.Key.Text.Body()
	}
	return &ratelimit.Limit{
		ID:    ratelimit.ID{Name: def.Name, Operator: operator, Rate: ratelimit.Rate{Calls: def.Calls, Per: def.Per}, Key: key},
		Burst: def.Burst, Concurrency: def.Concurrency, Reason: def.Reason, FailOpen: def.FailOpen,
	}
}

// compileUnusedKeys compiles the keys of limits that cover no item, to report their errors.
func (l *linker) compileUnusedKeys(defs []*definition.Limit, entries []*Entry) (problems diag.List) {
	for _, def := range defs {
		if def.Key != nil && !slices.ContainsFunc(entries, func(e *Entry) bool { return covers(def.Targets, e.Kind, e.Name) }) {
			_, more := l.state.env.CompileKey(keyOf(def), nil)
			problems = append(problems, more...)
		}
	}
	return problems
}

// bindLimits adds the limits of an entry: first from mcpd.hcl, then from tool files. It returns
// the diagnostics of their keys.
func (r *ruleSet) bindLimits(e *Entry) (found diag.List) {
	for i, def := range r.limits {
		if covers(def.Targets, e.Kind, e.Name) {
			found = append(found, r.bindLimit(e, def, r.counted[i])...)
		}
	}
	return found
}

func (r *ruleSet) bindLimit(e *Entry, def *definition.Limit, l *ratelimit.Limit) diag.List {
	if def.Key == nil {
		e.Limits = append(e.Limits, Limit{Limit: l})
		return nil
	}
	if r.keys.remaining() < 0 {
		return nil
	}
	src, key := keyOf(def), ruleKey{rule: def.Hash}
	if src.MayReadArgs() {
		key.item = (&schemaHash{entry: e}).get()
	}
	compiled, problems := r.keys.compile(key, func() (*policylang.Key, diag.List) {
		if known := r.known.keys[key]; known != nil {
			return known, nil
		}
		tool := toolOf(e)
		return r.env.CompileKey(src, &tool)
	})
	if compiled != nil {
		e.Limits = append(e.Limits, Limit{l, compiled})
	}
	return problems
}

func keyOf(def *definition.Limit) policylang.KeySource {
	return policylang.KeySource{Limit: def.Name, Text: def.Key.Text, Range: def.NameRange}
}

// addOwnLimits adds a limit to every entry that restricts its concurrency. It is checked last.
func (c *Catalog) addOwnLimits(entries []*Entry) {
	for _, e := range entries {
		if e.Concurrency == 0 {
			continue
		}
		own := &ratelimit.Limit{
			// The space keeps it distinct from limit blocks.
			ID:          ratelimit.ID{Name: e.Kind.String() + " " + e.Name},
			Concurrency: e.Concurrency, Local: true,
		}
		e.Limits = append(e.Limits, Limit{Limit: own})
		c.OwnLimits = append(c.OwnLimits, own)
	}
}
