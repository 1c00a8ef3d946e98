package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Catalog is the complete set of items that a server offers at one moment. It is immutable.
type Catalog struct {
	// Revision is a hash of all parts of the catalog, without the values of secrets.
	Revision string
	Settings
	Rules
	index
	upstreamOffers
	Tests []definition.Test
	// stages are the stages of its tests, by name; see [Builder.Stage].
	stages map[string]*Stage
	// Definitions are the definitions in the files, for comparison with other files.
	Definitions privdiff.Snapshot
	// removed has the items of earlier catalogs.
	removed map[removedKey]removedItem
}

// Settings are the server settings of mcpd.hcl, with resolved paths.
type Settings struct {
	Server definition.Server
	Listen definition.Listen
	Reload definition.Reload
	Limits definition.Limits
	// Auths are the auth blocks; without any, callers are not authenticated. Audit is nil if calls
	// are not audited.
	Auths []definition.Auth
	Audit *definition.Audit
	// Console is nil if the listener serves no console.
	Console *ConsoleAccess
	Secrets []secrets.Definition
	// SecretKeys maps secret names to the keys of their definitions.
	SecretKeys map[string]string
	Upstreams  []definition.Upstream
	// Sensitive redacts the values of sensitive variables.
	Sensitive redact.Text
}

// Rules are the hooks, policies and limits. Each entry has those that cover it.
type Rules struct {
	// Hooks are all hooks, first from mcpd.hcl.
	Hooks []*Hook
	// Policies counts the policies.
	Policies int
	// RateLimits are the limit blocks, first from mcpd.hcl. OwnLimits are the concurrency
	// limits of items.
	RateLimits, OwnLimits []*ratelimit.Limit
	// DenyByDefault reports that a call is denied unless a policy allows it.
	DenyByDefault bool
}

// index finds entries.
type index struct {
	// Entries has the entries of each kind, in bytewise order of their addresses.
	Entries   [kinds][]*Entry
	byAddress [kinds]map[string]*Entry
	// templates are in the order of the files: the first that matches is read.
	templates []*Entry
	// upstreamOrder has the positions of the upstream blocks, from 1, by name.
	upstreamOrder map[string]int
}

// upstreamOffers are the offers of upstream servers that were added to the base.
type upstreamOffers struct {
	base   *Base
	offers Offers
	// LeftOut are the offers that are not served, in order.
	LeftOut []LeftOut
	// Known are the accepted upstream tools, whether their server is reachable or not.
	Known []ToolName
	// withheld are the upstreams with tools that are not accepted on first use.
	withheld map[string]bool
}

// Entry is an item with its policies, limits and hooks in this catalog.
type Entry struct {
	*Item
	Rules []Policy
	// ResultRules are the policies that are evaluated on results, in order.
	ResultRules []Policy
	Limits      []Limit
	Hooks       []*Hook
}

// Base returns the part of the catalog that files define.
func (c *Catalog) Base() *Base { return c.base }

// Withheld reports whether the tools of a new upstream must not be written to mcpd.lock, as
// policies in the files do not match them.
func (c *Catalog) Withheld(upstream string) bool { return c.withheld[upstream] }

// defaultConcurrency is the default number of concurrent calls.
const defaultConcurrency = 1024

// Concurrency returns how many calls may run at once.
func (c *Catalog) Concurrency() int { return cmp.Or(c.Limits.Concurrency, defaultConcurrency) }

// Entry returns the entry with an address, or nil. A nil catalog has none.
func (c *Catalog) Entry(k Kind, address string) *Entry {
	if c == nil {
		return nil
	}
	return c.byAddress[k][address]
}

// Template returns the template with a name, or nil.
func (c *Catalog) Template(name string) *Entry {
	if c == nil {
		return nil
	}
	if i := slices.IndexFunc(c.templates, func(e *Entry) bool { return e.Name == name }); i >= 0 {
		return c.templates[i]
	}
	return nil
}

// Read returns the entry that serves a URI, with the variables of its template, or nil. A resource
// with that URI comes first, then the first template that matches. Local items come before upstream
// items, and upstream items in the order of their blocks.
func (c *Catalog) Read(uri string) (e *Entry, variables map[string]string) {
	e = c.Entry(Resources, uri)
	if c == nil || e != nil && e.Upstream == "" {
		return e, nil
	}
	read := uritemplate.NewURI(uri)
	for _, t := range c.templates {
		if e != nil && !c.precedes(t.Upstream, e.Upstream) {
			break // templates are in the order of their upstreams, after local ones
		}
		if variables, ok := t.Offer.match(read); ok {
			return t, variables
		}
	}
	return e, nil
}

// precedes reports whether the block of one upstream precedes the block of another; "" means local.
func (c *Catalog) precedes(upstream, other string) bool {
	return c.upstreamOrder[upstream] < c.upstreamOrder[other]
}

// Changed returns the URIs of resources that were added, removed or changed since an earlier
// catalog, in order.
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

// HooksFor returns the hooks for a phase of the calls of an item.
func HooksFor(hooks []*Hook, phase string, k Kind, name string) (wanted []*Hook) {
	for _, h := range hooks {
		if slices.Contains(h.Phases, phase) && covers(h.targets, k, name) {
			wanted = append(wanted, h)
		}
	}
	return wanted
}

func covers(t definition.Targets, k Kind, name string) bool {
	switch k {
	case Tools:
		return definition.MatchesAny(t.Tools, name)
	case Prompts:
		return definition.MatchesAny(t.Prompts, name)
	default:
		return definition.MatchesAny(t.Resources, name)
	}
}

// Kind is the kind of an item.
type Kind = call.Kind

// A template has the kind Templates and covers the resources with matching URIs.
const (
	Tools     = call.Tools
	Resources = call.Resources
	Templates = call.Templates
	Prompts   = call.Prompts

	kinds = 4
)

// maxName bounds the name of a tool, including the prefix of its upstream (2026-07-28 server/tools,
// Tool Names). Names in files are shorter.
const maxName = 128

// MaxAddress returns the maximum length of an address of a kind, in bytes.
func MaxAddress(k Kind) int {
	if k == Tools || k == Prompts {
		return maxName
	}
	return uritemplate.MaxURI
}

// names assigns item names to upstreams. It depends on the blocks alone, so that a name stays
// reserved while its server is unreachable.
type names struct {
	upstreams []definition.Upstream
	// given maps a name to the upstreams with blocks that assign it to a tool or prompt.
	given map[string][]*definition.Upstream
}

func newNames(upstreams []definition.Upstream) *names {
	n := &names{upstreams: upstreams, given: map[string][]*definition.Upstream{}}
	for i := range upstreams {
		for _, name := range upstreams[i].Rename {
			n.given[name] = append(n.given[name], &upstreams[i])
		}
	}
	return n
}

type conflict struct {
	reason string
	at     diag.Range
	// nameConflict reports that the operator must rename one of the two items.
	nameConflict bool
}

// conflict returns why an upstream item cannot have its name; nil if it can.
func (n *names) conflict(item *Item) *conflict {
	if given := n.given[item.Name]; given != nil && (item.Kind == Tools || item.Kind == Prompts) {
		if slices.ContainsFunc(given, func(u *definition.Upstream) bool { return u.Name == item.Upstream }) {
			return nil
		}
		return &conflict{fmt.Sprintf("the upstream %q renames one of its items to that name", given[0].Name), given[0].AliasRange(item.Name), true}
	}
	u := n.byPrefix(item)
	if u == nil || u.Name == item.Upstream {
		return nil
	}
	return &conflict{fmt.Sprintf("names with the prefix %q are reserved for the upstream %q", u.Prefix, u.Name), u.NameRange, false}
}

func inUse(item *Item, at diag.Range) *conflict {
	if item.Kind == Tools || item.Kind == Prompts {
		return &conflict{"the name is in use", at, true}
	}
	return &conflict{"the address is in use", at, false}
}

// byPrefix returns the upstream with the longest prefix of the item's name. If several have the
// same prefix, it prefers the upstream of the item.
func (n *names) byPrefix(item *Item) (owner *definition.Upstream) {
	for i := range n.upstreams {
		u := &n.upstreams[i]
		if u.Prefix == "" || !strings.HasPrefix(item.Name, u.Prefix) {
			continue
		}
		if owner == nil || len(u.Prefix) > len(owner.Prefix) || len(u.Prefix) == len(owner.Prefix) && u.Name == item.Upstream {
			owner = u
		}
	}
	return owner
}

func (n *names) block(upstream string) *definition.Upstream {
	at := slices.IndexFunc(n.upstreams, func(u definition.Upstream) bool { return u.Name == upstream })
	return &n.upstreams[at]
}

// accepted returns the upstreams that own the names of tools in mcpd.lock. The first upstream wins.
func (n *names) accepted(known []ToolName) map[string]string {
	holders := map[string]string{}
	for _, t := range known {
		as := &Item{Kind: Tools, Name: t.Name, Address: t.Name, Upstream: t.Upstream}
		if _, held := holders[t.Name]; !held && n.conflict(as) == nil {
			holders[t.Name] = t.Upstream
		}
	}
	return holders
}

// ListCache caches a value per visible list of a catalog, so that callers who see the same items
// share one V. It is safe for concurrent use, and the zero value is ready to use.
type ListCache[V any] struct {
	mu    sync.Mutex
	byKey map[listKey]*V
}

type listKey struct {
	kind   Kind
	hidden [sha256.Size]byte
}

// maxLists bounds the cache. More distinct lists cost time, not memory.
const maxLists = 256

// Get returns the value for the entries that are not hidden; hidden has a 1 for each hidden entry,
// or is nil. On a miss it calls show with the indices of the visible entries and a content hash:
// equal hashes mean equal lists.
func (l *ListCache[V]) Get(k Kind, entries []*Entry, hidden []byte, show func(seen []int, hash string) *V) *V {
	key := listKey{k, sha256.Sum256(hidden)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byKey[key]; known != nil {
		return known
	}
	seen, h := make([]int, 0, len(entries)), sha256.New()
	for i, e := range entries {
		if hidden == nil || hidden[i] != 1 {
			seen = append(seen, i)
			h.Write(e.ListHash[:])
		}
	}
	v := show(seen, hex.EncodeToString(h.Sum(nil)[:16]))
	if len(l.byKey) < maxLists {
		if l.byKey == nil {
			l.byKey = map[listKey]*V{}
		}
		l.byKey[key] = v
	}
	return v
}

// ReuseViews returns a view of each entry. It reuses the view of the same item in before, or calls
// show.
func ReuseViews[T any](entries []*Entry, before []*T, itemOf func(*T) *Item, show func(*Item) *T) []*T {
	known := make(map[*Item]*T, len(before))
	for _, view := range before {
		known[itemOf(view)] = view
	}
	shown := make([]*T, len(entries))
	for i, e := range entries {
		if shown[i] = known[e.Item]; shown[i] == nil {
			shown[i] = show(e.Item)
		}
	}
	return shown
}
