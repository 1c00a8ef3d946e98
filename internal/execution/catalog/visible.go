package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/policylang"
)

// Looking is what policies know of a caller who looks at what there is.
func Looking(caller identity.Caller, now time.Time) policylang.Input {
	return policylang.Input{Caller: caller, Call: policylang.CallFacts{Via: string(call.ViaClient)}, Now: now}
}

// Surely asks every policy of an item what can be said without the arguments.
// It returns the first that denies whatever they are; covered says that a
// policy may still allow the call.
func (e *Entry) Surely(ctx context.Context, facts policylang.Input) (denier *Policy, decision policylang.Decision, covered bool) {
	return e.SurelyHeard(ctx, facts, nil)
}

// Hearer is told what a policy has said, by its place among those of its entry.
type Hearer func(place int, decision policylang.Decision)

// SurelyHeard is [Entry.Surely] for one who wants to hear what each policy says that is
// asked; nil does not.
func (e *Entry) SurelyHeard(ctx context.Context, facts policylang.Input, heard Hearer) (denier *Policy, decision policylang.Decision, covered bool) {
	for i := range e.Rules {
		p := &e.Rules[i]
		if p.Compiled == nil {
			continue
		}
		decision = p.Compiled.Partial(ctx, facts)
		if heard != nil {
			heard(i, decision)
		}
		if decision.Outcome == policylang.Deny {
			return p, decision, covered
		}
		covered = covered || p.Allows && decision.Outcome != policylang.NotConcerned
	}
	return nil, policylang.Decision{}, covered
}

// Hides reports whether a call of an item is surely denied to a caller, so that
// nothing shows the item to it. facts are those of the caller and its call.
func (c *Catalog) Hides(ctx context.Context, e *Entry, facts policylang.Input) bool {
	facts.Tool = e.Facts
	denier, _, covered := e.Surely(ctx, facts)
	return denier != nil || c.DenyByDefault && !covered
}

// Hidden marks with a one each entry of a kind that is hidden from a caller, in
// their order; nil when none can be.
func (c *Catalog) Hidden(ctx context.Context, k Kind, facts policylang.Input) []byte {
	if c.Policies == 0 && !c.DenyByDefault {
		return nil
	}
	entries := c.Entries[k]
	hidden := make([]byte, len(entries))
	for i, e := range entries {
		switch {
		case i > 0 && e.sameRules(entries[i-1]):
			hidden[i] = hidden[i-1]
		case c.Hides(ctx, e, facts):
			hidden[i] = 1
		}
	}
	return hidden
}

// sameRules reports whether two entries surely have the same policies and the
// same facts: they are files of one folder.
func (e *Entry) sameRules(other *Entry) bool { return e.folder != nil && e.folder == other.folder }

// Nearest returns the address of what a caller who looks may see and may have meant by
// a name that is none: the resource of that name, what an upstream server itself calls so,
// one whose address is much the same, one that ends in the name, or a template of its shape;
// empty when there is nothing.
func (c *Catalog) Nearest(ctx context.Context, k Kind, name string, looking policylang.Input) string {
	hidden := c.Hidden(ctx, k, looking)
	addresses, prefixed := make([]string, 0, len(c.Entries[k])), map[string]string{}
	for i, e := range c.Entries[k] {
		switch {
		case hidden != nil && hidden[i] != 0:
		case k != Tools && e.Name == name:
			return e.Address
		default:
			addresses = append(addresses, e.Address)
			if own := c.withoutPrefix(k, e); own != "" && (prefixed[own] == "" || e.Address < prefixed[own]) {
				prefixed[own] = e.Address
			}
		}
	}
	if whole := prefixed[name]; whole != "" {
		return whole
	}
	near := diag.Suggest(name, slices.AppendSeq(slices.Clone(addresses), maps.Keys(prefixed)))
	if whole := prefixed[near]; whole != "" && !slices.Contains(addresses, near) {
		near = whole
	}
	longer := ""
	if k == Tools || k == Prompts {
		longer = diag.SuggestLonger(name, addresses)
	}
	return cmp.Or(near, longer, c.Shaped(k, name, func(e *Entry) bool { return c.Hides(ctx, e, looking) }))
}

// withoutPrefix returns the name of a tool or a prompt of an upstream without the prefix that
// the upstream gives it; "" where there is none.
func (c *Catalog) withoutPrefix(k Kind, e *Entry) string {
	if e.Upstream == "" || k != Tools && k != Prompts {
		return ""
	}
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Name == e.Upstream && u.Prefix != "" {
			own, _ := strings.CutPrefix(e.Address, u.Prefix)
			if own != e.Address {
				return own
			}
		}
	}
	return ""
}
