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

// Catalog is everything that a server offers at one moment. It is immutable.
type Catalog struct {
	// Revision is a hash of everything that the catalog is made of. The values
	// of secrets are not part of it.
	Revision string
	Settings
	Rules
	index
	upstreamOffers
	Tests []definition.Test
	// stages are those of its tests, by their names; see [Builder.Stage].
	stages map[string]*Stage
	// Said is what the files say, to be compared with what others do.
	Definitions privdiff.Snapshot
	// gone is what earlier catalogs held.
	removed map[removedKey]removedItem
}

// Settings are what the operator's file says of the server. Their paths are as the process
// opens them.
type Settings struct {
	Server definition.Server
	Listen definition.Listen
	Reload definition.Reload
	Limits definition.Limits
	// Auths are the auth blocks; none lets everybody in. Audit is nil when nothing is
	// written down.
	Auths   []definition.Auth
	Audit   *definition.Audit
	Secrets []secrets.Definition
	// SecretKeys name the definitions of secrets, by the names of these.
	SecretKeys map[string]string
	Upstreams  []definition.Upstream
	// Sensitive takes the values of sensitive variables out of what is written.
	Sensitive redact.Text
}

// Rules are what holds for several items. Each entry has those that cover it.
type Rules struct {
	// Hooks are all hooks, the operator's first.
	Hooks []*Hook
	// Policies counts the policies.
	Policies int
	// RateLimits are the limit blocks, the operator's first, and OwnLimits those of the
	// limits blocks of what is called.
	RateLimits, OwnLimits []*ratelimit.Limit
	// DenyByDefault says that a call is denied unless a policy allows it.
	DenyByDefault bool
}

// index finds entries.
type index struct {
	// Entries are those of each kind, in bytewise order of their addresses.
	Entries   [kinds][]*Entry
	byAddress [kinds]map[string]*Entry
	// templates are in the order of the files: the first that matches is read.
	templates []*Entry
	// places are those of the blocks of upstreams, from 1 on, by their names.
	upstreamOrder map[string]int
}

// laid is what upstream servers offer, laid over what files define.
type upstreamOffers struct {
	base   *Base
	offers Offers
	// LeftOut is what upstream servers offer and is not served, in order.
	LeftOut []LeftOut
	// Known are the tools that were accepted of upstream servers, whether these can be
	// reached or not.
	Known []ToolName
	// withheld are the upstreams whose tools are not taken in though they are seen first.
	withheld map[string]bool
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
		if e != nil && !c.precedes(t.Upstream, e.Upstream) {
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
func (c *Catalog) precedes(upstream, other string) bool {
	return c.upstreamOrder[upstream] < c.upstreamOrder[other]
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

// Wanting returns the hooks that want to know of a phase of the calls of an item.
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

type Kind = call.Kind

// The kinds. A template stands for the resources whose URIs match it.
const (
	Tools     = call.Tools
	Resources = call.Resources
	Templates = call.Templates
	Prompts   = call.Prompts

	kinds = 4
)

// maxName is how long the name of a tool may be, with the prefix of its upstream (2026-07-28
// server/tools, Tool Names). Files give shorter ones.
const maxName = 128

// MaxAddress is how long what anything of a kind is called by can be, in bytes.
func MaxAddress(k Kind) int {
	if k == Tools || k == Prompts {
		return maxName
	}
	return uritemplate.MaxURI
}

// names says which upstreams may use which names. It follows from their blocks alone, so
// that a name stays reserved while its server cannot be reached.
type names struct {
	upstreams []definition.Upstream
	// given are the upstreams whose blocks give a tool or a prompt a name, by the name.
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
	// taken says that the block has to be mended: give one of the two another name.
	nameConflict bool
}

// conflict returns why the upstream of an item may not use its name, nil where it may.
func (n *names) conflict(item *Item) *conflict {
	if given := n.given[item.Name]; given != nil && (item.Kind == Tools || item.Kind == Prompts) {
		if slices.ContainsFunc(given, func(u *definition.Upstream) bool { return u.Name == item.Upstream }) {
			return nil
		}
		return &conflict{fmt.Sprintf("the upstream %q gives one of its own that name", given[0].Name), given[0].AliasRange(item.Name), true}
	}
	u := n.byPrefix(item)
	if u == nil || u.Name == item.Upstream {
		return nil
	}
	return &conflict{fmt.Sprintf("names that begin with %q are those of the upstream %q", u.Prefix, u.Name), u.NameRange, false}
}

func inUse(item *Item, at diag.Range) *conflict {
	if item.Kind == Tools || item.Kind == Prompts {
		return &conflict{"there is one of that name already", at, true}
	}
	return &conflict{"there is one of that address already", at, false}
}

// byPrefix returns the upstream whose names begin as that of an item does: of several that
// of the longest prefix, and the item's own before others.
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

// accepted returns who may use the names of tools that mcpd.lock accepts: of several
// upstreams the first.
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

// Lists remembers what is made of the lists of a catalog, so that callers who
// see the same share one V. It is safe for concurrent use, and the zero Lists is
// ready for it.
type ListCache[V any] struct {
	mu    sync.Mutex
	byKey map[listKey]*V
}

type listKey struct {
	kind   Kind
	hidden [sha256.Size]byte
}

// maxLists bounds what is remembered; a flood of callers who each see something
// else costs time, not memory.
const maxLists = 256

// Of returns what show makes of a list of entries without those that are hidden,
// each marked by a one; hidden is nil where none are. Show is given the indices of
// the others and a content hash of what they show: equal hashes mean equal lists.
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

// Faces returns what shows each entry: what showed its item before, or new.
func ReuseViews[T any](entries []*Entry, before []*T, itemOf func(*T) *Item, show func(*Item) *T) []*T {
	known := make(map[*Item]*T, len(before))
	for _, face := range before {
		known[itemOf(face)] = face
	}
	shown := make([]*T, len(entries))
	for i, e := range entries {
		if shown[i] = known[e.Item]; shown[i] == nil {
			shown[i] = show(e.Item)
		}
	}
	return shown
}
