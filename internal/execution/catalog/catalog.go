package catalog

import (
	"cmp"
	"slices"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Catalog is everything that a server offers at one moment. It is immutable.
type Catalog struct {
	// Revision is a hash of everything that the catalog is made of. The values
	// of secrets are not part of it.
	Revision string
	// Server, Listen, Reload and Limits are the blocks of the operator's file.
	Server definition.Server
	Listen definition.Listen
	Reload definition.Reload
	Limits definition.Limits
	// Auths are the auth blocks; none lets everybody in. Audit is nil when nothing is
	// written down. Their paths, and those of Listen, are as the process opens them.
	Auths []definition.Auth
	Audit *definition.Audit
	// Entries are those of each kind, in bytewise order of their addresses.
	Entries [kinds][]*Entry
	// Hooks are all hooks, the operator's first.
	Hooks []*Hook
	// Policies counts all policies.
	Policies int
	// RateLimits are the limit blocks, the operator's first; Limits is the limits block.
	RateLimits []*ratelimit.Limit
	// OwnLimits are those of the limits blocks of what is called.
	OwnLimits []*ratelimit.Limit
	// DenyByDefault says that a call is denied unless a policy allows it.
	DenyByDefault bool
	Secrets       []secrets.Def
	// Upstreams are the upstream blocks, with paths as the process opens them.
	Upstreams []definition.Upstream
	// SecretKeys maps the name of a secret to the key of its definition.
	SecretKeys map[string]string
	// Sensitive takes the values of sensitive variables out of what is written.
	Sensitive redact.Text
	Tests     []definition.Test
	// stages are those of its tests, by their names; see [Builder.Stage].
	stages map[string]*Stage
	// Said is what the files say, to be compared with what others do.
	Said privdiff.Side
	// LeftOut is what upstream servers offer and is not served, in order.
	LeftOut []LeftOut
	// Known are the tools that were accepted of upstream servers, whether these can be
	// reached or not.
	Known []ToolName

	byAddress [kinds]map[string]*Entry
	// templates are in the order of the files: the first that matches is read.
	templates []*Entry
	// places are those of the blocks of upstreams, from 1 on, by their names.
	places map[string]int
	// base is what the files define, and offers what is laid over it. withheld are the
	// upstreams whose tools are not taken in though they are seen first.
	base     *Base
	offers   Offers
	withheld map[string]bool
	// gone is what earlier catalogs held.
	gone map[goneKey]gone
}

// Entry is an item with the policies, limits and hooks that this catalog gives it.
type Entry struct {
	*Item
	Rules []Policy
	// ResultRules judge what a call returned, in their order.
	ResultRules []Policy
	Limits      []Limit
	Hooks       []*Hook
}

// Base returns what the files define of what the catalog serves.
func (c *Catalog) Base() *Base { return c.base }

// Withheld reports whether the tools of an upstream that is seen first are not to be written
// to mcpd.lock, as rules of the files do not fit them.
func (c *Catalog) Withheld(upstream string) bool { return c.withheld[upstream] }

// defaultConcurrency is how many calls run at once unless limits says otherwise.
const defaultConcurrency = 1024

// Concurrency is how many calls may run at once.
func (c *Catalog) Concurrency() int { return cmp.Or(c.Limits.Concurrency, defaultConcurrency) }

// Entry returns the entry of an address, or nil. A nil catalog has none.
func (c *Catalog) Entry(k Kind, address string) *Entry {
	if c == nil {
		return nil
	}
	return c.byAddress[k][address]
}

// Read returns the entry that answers for a URI, with the variables of its
// template, or nil: a resource of that URI, or else the first template that
// matches it. What an upstream server offers comes behind all that is our own,
// and behind what those offer whose blocks stand before its own.
func (c *Catalog) Read(uri string) (e *Entry, variables map[string]string) {
	e = c.Entry(Resources, uri)
	if c == nil || e != nil && e.Upstream == "" {
		return e, nil
	}
	read := uritemplate.NewURI(uri)
	for _, t := range c.templates {
		if e != nil && !c.before(t.Upstream, e.Upstream) {
			break // they are in the order of their upstreams, behind our own
		}
		if variables, ok := t.Offer.match(read); ok {
			return t, variables
		}
	}
	return e, nil
}

// before reports whether the block of an upstream stands before that of another; "" stands
// for what is our own.
func (c *Catalog) before(upstream, other string) bool { return c.places[upstream] < c.places[other] }

// Shaped returns the address of the first template that a URI would fit if its
// values were others, of those that are not hidden; "" when there is none, or
// the kind is not that of resources.
func (c *Catalog) Shaped(k Kind, uri string, hidden func(*Entry) bool) string {
	if k != Resources {
		return ""
	}
	read := uritemplate.NewURI(uri)
	for _, e := range c.templates {
		if _, ok := e.Offer.Template.Match(read); ok && !hidden(e) {
			return e.Address
		}
	}
	return ""
}

// Changed returns the URIs of the resources that are others than in an earlier
// catalog, or are in one of the two alone, in order.
func (c *Catalog) Changed(earlier *Catalog) []string {
	var changed []string
	now, before := c.byAddress[Resources], earlier.byAddress[Resources]
	for uri, e := range now {
		if old := before[uri]; old == nil || old.Item != e.Item && old.Key != e.Key {
			changed = append(changed, uri)
		}
	}
	for uri := range before {
		if now[uri] == nil {
			changed = append(changed, uri)
		}
	}
	slices.Sort(changed)
	return changed
}

// Wants reports whether the hook wants to know of a phase of calls of an item.
func (h *Hook) Wants(phase string, k Kind, name string) bool {
	return slices.Contains(h.Phases, phase) && covers(h.targets, k, name)
}

// Wanting returns those of hooks that want to know of a phase of calls of an item.
func Wanting(hooks []*Hook, phase string, k Kind, name string) (wanted []*Hook) {
	for _, h := range hooks {
		if h.Wants(phase, k, name) {
			wanted = append(wanted, h)
		}
	}
	return wanted
}

// covers reports whether targets name an item.
func covers(t definition.Targets, k Kind, name string) bool {
	switch k {
	case Tools:
		return definition.Covers(t.Tools, name)
	case Prompts:
		return definition.Covers(t.Prompts, name)
	default:
		return definition.Covers(t.Resources, name)
	}
}
