package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Offers are the current offers of upstream servers, in the order of their blocks.
type Offers struct {
	Items []*Item
	// LeftOut are offers that are no valid item, with reasons for the operator.
	LeftOut []LeftOut
	// Problems are warnings about invalid offers.
	Problems diag.List
	// Instructions are the instructions of servers whose blocks add them, each after the server
	// name.
	Instructions []string
	// Known are the accepted tools, including tools of unreachable servers.
	Known []ToolName
	// Unreachable are the names of unreachable servers. Unconnected are the servers that were not connected:
	// only their tools are known.
	Unreachable, Unconnected []string
	// FirstUse are the new servers, with the names of the tools that will be accepted when they are
	// served.
	FirstUse map[string][]string
	// Accepted is a hash of the accepted and rejected tools; zero if there are none.
	Accepted [32]byte
}

// Overlay returns a catalog of a base and the offers of upstream servers, with warnings for the
// operator. It never fails: an invalid offer is left out. It reads no file, and reuses the compiled
// base.
func (b *Builder) Overlay(base *Base, offers Offers) (*Catalog, diag.List) {
	b.cacheOffers(base.Upstreams, offers.Items)
	o := &overlay{base: base, offers: &offers, rules: base.rules.fork(), isExcluded: map[*Item]bool{}, excludedCount: map[string]int{}, withheld: map[string]bool{}}
	o.report(offers.Problems)
	o.excluded = slices.Clone(offers.LeftOut)
	entries := o.candidates(b.listError)
	o.excludeURIConflicts(entries)
	entries = o.bind(entries)
	o.checkReferences(entries)
	entries = o.withhold(entries)
	o.reportMore()
	base.rules.known = o.rules.compiled()
	if b.cache.env == base.rules.env {
		b.cache.rules = base.rules.known
	}
	return o.catalog(entries), o.problems
}

type overlay struct {
	base   *Base
	offers *Offers
	rules  *ruleSet
	// excluded are the offers that are left out, isExcluded is the same as a set, and excludedCount
	// counts them by upstream.
	excluded      []LeftOut
	isExcluded    map[*Item]bool
	excludedCount map[string]int
	withheld      map[string]bool
	problems      diag.List
}

func (o *overlay) report(problems diag.List) { o.problems = append(o.problems, problems...) }

// candidates returns entries for the items with free names. Local names win. Among upstreams, the
// one with an accepted tool in mcpd.lock wins, then the first one.
func (o *overlay) candidates(unlistable func(*Item) error) (entries []*Entry) {
	taken, holders := map[offerKey]diag.Range{}, o.base.names.accepted(o.offers.Known)
	for _, item := range o.offers.Items {
		key := offerKey{item.Kind, item.Address}
		c := o.base.names.conflict(item)
		if local := o.base.Entry(item.Kind, item.Address); c == nil && local != nil {
			c = inUse(item, local.Where)
		}
		if holder := holders[item.Name]; c == nil && item.Kind == Tools && holder != "" && holder != item.Upstream {
			c = &conflict{fmt.Sprintf("mcpd.lock has a tool with that name from the upstream %q", holder), o.base.names.block(holder).NameRange, true}
		}
		if at, is := taken[key]; c == nil && is {
			c = inUse(item, at)
		}
		if c != nil {
			o.excludeWithWarning(item, LeftOut{Reason: c.reason, NameConflict: c.nameConflict}, item.Where, diag.Note{Range: c.at, Message: "the other one"})
			continue
		}
		if err := unlistable(item); err != nil {
			o.excludeWithWarning(item, LeftOut{Reason: "it cannot be shown to clients: " + err.Error()}, item.Where)
			continue
		}
		taken[key], entries = item.Where, append(entries, &Entry{Item: item})
	}
	return entries
}

// excludeURIConflicts leaves out items that would be read instead of a resource with a policy,
// limit or hook, and so bypass it.
func (o *overlay) excludeURIConflicts(entries []*Entry) {
	templates, resources := slices.Clip(o.base.templates), slices.Clip(o.base.Entries[Resources])
	for _, e := range entries {
		switch e.Kind {
		case Templates:
			templates = append(templates, e)
		case Resources:
			resources = append(resources, e)
		}
	}
	c := &uriConflicts{rules: o.base.resourceRules, exclude: func(item *Item, why string) { o.excludeWithWarning(item, LeftOut{Reason: why}, item.Where) }}
	c.checkAll(templates, resources, o.base.precedes)
}

// bind adds policies and limits to entries, and returns the entries that match all of them. If
// there is no capacity for all, accepted tools come first, so that new offers of a server cannot
// displace them.
func (o *overlay) bind(entries []*Entry) []*Entry {
	rank := make(map[ToolName]int, len(o.offers.Known))
	for _, t := range o.offers.Known {
		rank[t] = -1
	}
	entries = o.without(entries)
	slices.SortStableFunc(entries, func(a, b *Entry) int { return rank[ToolName{a.Upstream, a.Name}] - rank[ToolName{b.Upstream, b.Name}] })
	r := o.rules
	found, full := bindAll(r.policies, entries, len(r.operators)+len(r.authors), r.bindPolicies)
	entries = o.keepMatching(entries, found, full)
	found, full = bindAll(r.keys, entries, len(r.limits), r.bindLimits)
	return o.keepMatching(entries, found, full)
}

func (o *overlay) keepMatching(entries []*Entry, found []diag.List, full int) []*Entry {
	var warnings diag.List
	for i, e := range entries {
		switch wrong := errorsOf(found[i]); {
		case i >= full:
			o.excludeWithWarning(e.Item, LeftOut{Reason: "the rules that read args cover too many items", PolicyMismatch: true}, e.Where)
		case len(wrong) > 0:
			o.excludeWithWarning(e.Item, LeftOut{Reason: "a rule that covers it does not fit its inputs: " + wrong[0].Summary, PolicyMismatch: true}, wrong[0].Range, wrong[0].Notes...)
			if _, first := o.offers.FirstUse[e.Upstream]; first && e.Kind == Tools {
				o.withheld[e.Upstream] = true
			}
		default:
			warnings = append(warnings, found[i]...)
		}
	}
	o.report(warnings.OncePerPlace())
	return o.without(entries)
}

// checkReferences warns of names and patterns in files that no server offers. A new server is not
// accepted if it lacks a tool that a file names, as mcpd.lock would not match the files.
func (o *overlay) checkReferences(entries []*Entry) {
	if len(o.base.references) == 0 {
		return
	}
	names := map[string][]string{}
	add := func(k Kind, name string) {
		if k == Templates {
			k = Resources // which shares names with Resources
		}
		names[k.String()] = append(names[k.String()], name)
	}
	for kind := range o.base.Entries {
		for _, e := range o.base.Entries[kind] {
			add(e.Kind, e.Name)
		}
	}
	for _, e := range entries {
		add(e.Kind, e.Name)
	}
	for _, l := range o.excluded {
		add(l.Kind, l.Address)
	}
	for kind := range names {
		slices.Sort(names[kind])
	}
	o.report(configcheck.CheckReferences(o.base.references, configcheck.Listings{Names: names, Listed: o.hasListed}))
	for i := range o.base.references {
		if r := &o.base.references[i]; r.Kind == Tools.String() && !r.IsPattern() && o.lacksTool(r) {
			for _, u := range r.Upstreams {
				_, first := o.offers.FirstUse[u.Name]
				o.withheld[u.Name] = o.withheld[u.Name] || first
			}
		}
	}
}

// lacksTool reports whether mcpd.lock would lack a tool that a file names after all new servers are
// accepted.
func (o *overlay) lacksTool(r *configcheck.Reference) bool {
	if slices.ContainsFunc(o.offers.Known, func(t ToolName) bool { return t.Name == r.Text }) {
		return false
	}
	return !slices.ContainsFunc(r.Upstreams, func(u *definition.Upstream) bool {
		tools, first := o.offers.FirstUse[u.Name]
		return slices.Contains(tools, r.Text) || !first && !slices.Contains(o.base.locked, u.Name)
	})
}

// hasListed reports whether a server has listed its items of a kind.
func (o *overlay) hasListed(upstream, kind string) bool {
	return !slices.Contains(o.offers.Unreachable, upstream) && (kind == Tools.String() || !slices.Contains(o.offers.Unconnected, upstream))
}

// withhold leaves out the tools of new upstreams that are not accepted, as only accepted tools are
// served.
func (o *overlay) withhold(entries []*Entry) []*Entry {
	for _, e := range entries {
		if e.Kind == Tools && o.withheld[e.Upstream] {
			o.exclude(e.Item, LeftOut{Reason: "no tool of this server is accepted yet, because policies or limits do not match its tools", PolicyMismatch: true})
		}
	}
	for i := range o.base.Upstreams {
		if u := &o.base.Upstreams[i]; o.withheld[u.Name] {
			o.report(diag.List{{
				Severity: diag.Warning, Code: "left-out", Range: u.NameRange,
				Summary: fmt.Sprintf("no tool of the upstream %q is accepted and served until policies and limits match its tools", u.Name),
				Detail:  "fix the policies and limits that other warnings name; the tools are then added to mcpd.lock",
			}})
		}
	}
	return o.without(entries)
}

// LeftOut is an offer of an upstream server that is not served.
type LeftOut struct {
	offerKey
	// Upstream is the name of the server, and Reason the reason for the operator.
	Upstream, Reason string
	// Quarantined reports a tool that is not accepted in its current form.
	Quarantined bool
	// PolicyMismatch reports that a policy or limit does not match it, and NameConflict that
	// another item has its name.
	PolicyMismatch, NameConflict bool
}

// CodeQuarantined is the diagnostic code for a tool that is not accepted in its current form. The
// federation logs each of them.
const CodeQuarantined = "quarantined"

// NewLeftOut returns a left-out offer that is no item yet. address is its address for callers.
func NewLeftOut(kind Kind, address, upstream, why string) LeftOut {
	return LeftOut{offerKey: offerKey{kind, truncateName(address)}, Upstream: upstream, Reason: why}
}

// offerKey is the kind and the address for callers.
type offerKey struct {
	Kind    Kind
	Address string
}

// truncateName bounds an upstream name in bytes, at a character boundary.
func truncateName(name string) string {
	if len(name) > maxName {
		return truncate.Start(name, maxName) + "…"
	}
	return name
}

// maxExcludedWarnings bounds the warnings per upstream, which may list thousands of items
// repeatedly.
const maxExcludedWarnings = 20

func (o *overlay) excludeWithWarning(item *Item, left LeftOut, at diag.Range, notes ...diag.Note) {
	if !o.exclude(item, left) {
		return
	}
	if o.excludedCount[item.Upstream]++; o.excludedCount[item.Upstream] > maxExcludedWarnings {
		return
	}
	o.report(diag.List{{
		Severity: diag.Warning, Code: "left-out", Range: at, Notes: notes,
		Summary: fmt.Sprintf("the %s %q of the upstream %q is left out: %s", item.Kind, truncateName(item.Name), item.Upstream, left.Reason),
	}})
}

// exclude marks an item as not served. It reports whether the item was not marked before.
func (o *overlay) exclude(item *Item, left LeftOut) bool {
	if o.isExcluded[item] {
		return false
	}
	o.isExcluded[item] = true
	left.offerKey, left.Upstream = offerKey{item.Kind, item.Address}, item.Upstream
	o.excluded = append(o.excluded, left)
	return true
}

func (o *overlay) without(entries []*Entry) []*Entry {
	return slices.DeleteFunc(entries, func(e *Entry) bool { return o.isExcluded[e.Item] })
}

// reportMore reports the number of left-out items without a warning.
func (o *overlay) reportMore() {
	for i := range o.base.Upstreams {
		u := &o.base.Upstreams[i]
		if more := o.excludedCount[u.Name] - maxExcludedWarnings; more > 0 {
			o.report(diag.List{{
				Severity: diag.Warning, Code: "left-out", Range: u.NameRange, Summary: fmt.Sprintf("%d more items of the upstream %q are left out", more, u.Name),
			}})
		}
	}
}

func (o *overlay) catalog(entries []*Entry) *Catalog {
	c := *o.base.Catalog
	c.offers, c.withheld, c.LeftOut, c.Known = *o.offers, o.withheld, o.excluded, o.offers.Known
	c.Server = withInstructions(c.Server, o.offers.Instructions)
	for kind := range c.Entries {
		c.Entries[kind], c.byAddress[kind] = slices.Clone(c.Entries[kind]), maps.Clone(c.byAddress[kind])
	}
	c.templates, c.OwnLimits = slices.Clone(c.templates), slices.Clone(c.OwnLimits)
	slices.SortStableFunc(entries, func(a, b *Entry) int { return c.upstreamOrder[a.Upstream] - c.upstreamOrder[b.Upstream] })
	for _, e := range entries {
		c.Entries[e.Kind], c.byAddress[e.Kind][e.Address] = append(c.Entries[e.Kind], e), e
		if e.Kind == Templates {
			c.templates = append(c.templates, e)
		}
	}
	for kind := range c.Entries {
		slices.SortFunc(c.Entries[kind], func(a, b *Entry) int { return strings.Compare(a.Address, b.Address) })
	}
	c.addOwnLimits(entries)
	c.addHooks(entries)
	c.Revision = o.revision(entries)
	return &c
}

// revision returns the revision of the base if there are no offers. It includes left-out items, so that
// a change of them changes the status.
func (o *overlay) revision(entries []*Entry) string {
	if len(entries) == 0 && len(o.excluded) == 0 && len(o.offers.Instructions) == 0 && o.offers.Accepted == ([32]byte{}) {
		return o.base.Revision
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %x", o.base.Revision, o.offers.Accepted)
	for _, text := range o.offers.Instructions {
		fmt.Fprintf(h, "\n%q", text)
	}
	for _, e := range entries {
		fmt.Fprintf(h, "\n%q %x", e.Name, e.Key)
	}
	for _, l := range o.excluded {
		fmt.Fprintf(h, "\n%s %q %q %q", l.Kind, l.Address, l.Upstream, l.Reason)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// addUpstreams returns the configuration with the upstreams that the program adds.
func (b *Builder) addUpstreams(config *definition.Config) (with *definition.Config, problems diag.List) {
	if len(b.options.Upstreams) == 0 {
		return config, nil
	}
	more := *config
	more.Upstreams = slices.Clone(config.Upstreams)
	for _, u := range b.options.Upstreams {
		if i := slices.IndexFunc(config.Upstreams, func(other definition.Upstream) bool { return other.Name == u.Name }); i >= 0 {
			problems = append(problems, diag.Diagnostic{
				Code: "duplicate-upstream", Range: config.Upstreams[i].NameRange,
				Summary: fmt.Sprintf("the upstream %q is also defined by %s", u.Name, u.NameRange.File), Detail: "remove the block, or rename one of the two",
			})
			continue
		}
		more.Upstreams = append(more.Upstreams, u)
	}
	return &more, problems
}

// resolveUpstreams returns upstream blocks with resolved paths.
func (b *Builder) resolveUpstreams(blocks []definition.Upstream) []definition.Upstream {
	folder := filepath.Dir(filepath.FromSlash(b.options.ConfigPath))
	blocks = slices.Clone(blocks)
	for i := range blocks {
		u := &blocks[i]
		u.Dir = resolvePath(folder, u.Dir)
		if len(u.Command) > 0 && strings.ContainsAny(u.Command[0], `/\`) {
			u.Command = slices.Clone(u.Command)
			if u.Command[0] = resolvePath(folder, u.Command[0]); !strings.ContainsAny(u.Command[0], `/\`) {
				u.Command[0] = "." + string(filepath.Separator) + u.Command[0] // otherwise PATH would be searched
			}
		}
	}
	return blocks
}
