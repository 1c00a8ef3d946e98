package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// checkURIConflicts reports items that are read instead of a resource which a rule of mcpd.hcl
// covers, without being covered themselves. They would bypass the operator's rules.
func (l *linker) checkURIConflicts() {
	c := &uriConflicts{rules: resourceRules(l.state), reported: map[[2]diag.Range]bool{}}
	for _, pair := range l.hidden {
		c.check(pair[0], pair[1], func() bool { return true })
	}
	c.checkAll(l.catalog.templates, l.catalog.Entries[Resources], l.catalog.precedes)
	l.state.report(c.found)
}

// uriConflicts finds items that are read instead of others.
type uriConflicts struct {
	rules []resourceRule
	// exclude leaves out an upstream item, which may bypass no rule of an author either. It is nil
	// without upstreams; otherwise only upstream items are checked.
	exclude  func(item *Item, why string)
	reported map[[2]diag.Range]bool
	found    diag.List
}

// checkAll checks all pairs of items that may match the same URI. The templates are in matching
// order.
func (c *uriConflicts) checkAll(templates, resources []*Entry, before func(upstream, other string) bool) {
	if len(c.rules) == 0 {
		return
	}
	steps := overlapSteps
	for i, t := range templates {
		for _, e := range resources {
			first, second := e.Item, t.Item
			if e.Upstream != "" && before(t.Upstream, e.Upstream) {
				first, second = second, first
			}
			c.check(first, second, func() bool {
				if !strings.HasPrefix(e.Address, t.Offer.Template.Prefix()) {
					return false
				}
				_, ok := t.Offer.match(uritemplate.NewURI(e.Address))
				return ok
			})
		}
		for _, earlier := range templates[:i] {
			c.check(earlier.Item, t.Item, func() bool { return mayOverlap(earlier.Offer.Template, t.Offer.Template, &steps) })
		}
	}
}

// check reports that first is read instead of second, if inPlace returns true.
func (c *uriConflicts) check(first, second *Item, inPlace func() bool) {
	if c.exclude != nil && first.Upstream == "" && second.Upstream == "" {
		return
	}
	at := slices.IndexFunc(c.rules, func(r resourceRule) bool {
		return (!r.author || first.Upstream != "") && r.covers(second) && !r.covers(first)
	})
	if at < 0 || !inPlace() {
		return
	}
	rule := &c.rules[at]
	for _, offered := range []*Item{first, second} {
		if offered.Upstream != "" {
			c.exclude(offered, fmt.Sprintf("it would be read instead of another resource that the %s %q covers", rule.kind, rule.name))
			return
		}
	}
	pair := [2]diag.Range{first.Where, second.Where}
	if c.reported[pair] {
		return // another file of the same folder block
	}
	c.reported[pair] = true
	c.found = append(c.found, diag.Diagnostic{
		Code: "shadowed-rule", Range: first.Where,
		Summary: fmt.Sprintf("%s %q is read instead of %s %q, which the operator's %s %q covers", first.Kind, first.Name, second.Kind, second.Name, rule.kind, rule.name),
		Detail:  fmt.Sprintf("choose another URI, or ask the operator to add %q to the %s", first.Name, rule.kind),
		Notes:   []diag.Note{{Range: second.Where, Message: fmt.Sprintf("%s %q", second.Kind, second.Name)}},
	})
}

// overlapSteps bounds the search for templates with disjoint URIs. Beyond it, templates are assumed
// to overlap.
const overlapSteps = 2_000_000

func mayOverlap(a, b *uritemplate.Template, steps *int) bool {
	if !strings.HasPrefix(a.Prefix(), b.Prefix()) && !strings.HasPrefix(b.Prefix(), a.Prefix()) {
		return false
	}
	return a.Overlaps(b, steps) || *steps <= 0
}

// resourceRule is a policy, limit or hook with its resource targets. author reports that it is in a
// tool file.
type resourceRule struct {
	kind, name string
	targets    definition.Targets
	author     bool
}

func (r *resourceRule) covers(i *Item) bool { return covers(r.targets, i.Kind, i.Name) }

// resourceRules returns the policies, limits and hooks for specific resources.
func resourceRules(state *buildState) (rules []resourceRule) {
	author := false
	add := func(what, name string, targets definition.Targets) {
		if len(targets.Resources) > 0 {
			rules = append(rules, resourceRule{what, name, targets, author})
		}
	}
	addAll := func(policies []definition.Policy, limits []definition.Limit, hooks []definition.Hook) {
		for i := range policies {
			add("policy", policies[i].Name, policies[i].Targets)
		}
		for i := range limits {
			add("limit", limits[i].Name, limits[i].Targets)
		}
		for i := range hooks {
			add("hook", hooks[i].Name, hooks[i].Targets)
		}
	}
	addAll(state.config.Policies, state.config.RateLimits, state.config.Hooks)
	author = true
	addAll(state.policies, state.limits, state.hookDefs)
	return rules
}

// duplicateFile reports files of two folder blocks with the same URI, once per pair of blocks. A
// resource block intentionally wins over a file, and configcheck reports equal prefixes.
func (l *linker) duplicateFile(first, second *Item) {
	if first.folder == nil || second.folder == nil || first.folder.URIPrefix == second.folder.URIPrefix {
		return
	}
	pair := [2]*definition.Folder{first.folder, second.folder}
	if l.reportedFolders[pair] {
		return
	}
	l.reportedFolders[pair] = true
	l.state.report(diag.List{{
		Code: "duplicate-uri", Range: second.folder.PrefixRange,
		Summary: fmt.Sprintf("files of the folders %q and %q have the same URI, %q", first.Name, second.Name, first.Address),
		Detail:  "change one of the two prefixes, or exclude the file from one of the folders",
		Notes:   []diag.Note{{Range: first.folder.PrefixRange, Message: "the prefix of the other folder"}},
	}})
}
