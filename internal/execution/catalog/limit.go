package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
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
		if l.key == nil {
			continue
		}
		text, err := l.key.Eval(ctx, facts)
		if err != nil {
			return nil, l.Name, err
		}
		if l.key.OfCaller() {
			// Principals of other kinds or issuers may have the same id.
			p := &facts.Caller.Principal
			text = string(p.Kind) + "\x00" + p.Issuer + "\x00" + text
		}
		charges[i].Key = ratelimit.Key(text)
	}
	return charges, "", nil
}

// LimitUse is how much of a bound of a limit block is in use. A block with a rate and a concurrency has
// two bounds.
type LimitUse struct {
	Name  string
	Where diag.Range
	// Kind is rate or concurrency, and Bound describes the bound.
	Kind, Bound string
	// Shared, Keys and Most are as in [ratelimit.Usage].
	Shared bool
	Keys   int
	Most   []KeyUse
}

// KeyUse is the share of a bound that a key uses. The texts are what an operator may see of the key.
type KeyUse struct {
	ratelimit.KeyShare
	// AuthKind and Issuer are those of the principal, if the key reads its id.
	AuthKind, Issuer string
	// Text is the value of the key, without sensitive variables. It is empty if it is hidden, as it may
	// contain arguments or is too long, and for a limit without a key.
	Text   string
	Hidden bool
}

// LimitUses returns how much of each limit block is in use, those nearest to their bound first, with at
// most n keys of each.
func (c *Catalog) LimitUses(counted ratelimit.Store, n int) (uses []LimitUse) {
	for i, def := range c.base.rules.limits {
		l := c.base.rules.counted[i]
		usage := counted.Usage(l, n)
		use := LimitUse{Name: l.Name, Where: def.NameRange, Shared: usage.Shared, Keys: usage.Keys}
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

// keyUses describes keys that [Entry.Charges] returned for a limit.
func (c *Catalog) keyUses(def *definition.Limit, shares []ratelimit.KeyShare) []KeyUse {
	uses := make([]KeyUse, len(shares))
	for i, s := range shares {
		use := &uses[i]
		use.KeyShare = s
		if def.Key == nil || s.Rest {
			continue
		}
		if use.Hidden = !utf8.ValidString(s.Key); use.Hidden {
			continue // the hash of a long key
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

// bindLimits adds the limits of an entry: those of mcpd.hcl, then those of tool files. It returns
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
