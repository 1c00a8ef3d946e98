package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// checkShadows reports what is read in the place of another resource that a rule of the
// operator is about, and is not under that rule itself: what stands at an address would
// get past the operator by standing before what was meant.
func (k *linker) checkURIConflicts() {
	s := &uriConflicts{rules: resourceRules(k.found), reported: map[[2]diag.Range]bool{}}
	for _, pair := range k.hidden {
		s.check(pair[0], pair[1], func() bool { return true })
	}
	s.checkAll(k.catalog.templates, k.catalog.Entries[Resources], k.catalog.precedes)
	k.found.report(s.found)
}

// shadows are the resources that are in the place of others.
type uriConflicts struct {
	rules []resourceRule
	// leaveOut excludes what an upstream offers: that gets past no rule of an author either.
	// It is nil where there are no upstreams, and else only what they offer is looked at.
	exclude  func(item *Item, why string)
	reported map[[2]diag.Range]bool
	found    diag.List
}

// lookAll looks at all pairs of which one may be read in the place of the other. The
// templates are in the order in which they are tried.
func (s *uriConflicts) checkAll(templates, resources []*Entry, before func(upstream, other string) bool) {
	if len(s.rules) == 0 {
		return
	}
	steps := overlapSteps
	for i, t := range templates {
		for _, e := range resources {
			first, second := e.Item, t.Item
			if e.Upstream != "" && before(t.Upstream, e.Upstream) {
				first, second = second, first
			}
			s.check(first, second, func() bool {
				if !strings.HasPrefix(e.Address, t.Offer.Template.Prefix()) {
					return false
				}
				_, ok := t.Offer.match(uritemplate.NewURI(e.Address))
				return ok
			})
		}
		for _, earlier := range templates[:i] {
			s.check(earlier.Item, t.Item, func() bool { return mayOverlap(earlier.Offer.Template, t.Offer.Template, &steps) })
		}
	}
}

// look reports that first is read in the place of second, if it is: inPlace tells.
func (s *uriConflicts) check(first, second *Item, inPlace func() bool) {
	if s.exclude != nil && first.Upstream == "" && second.Upstream == "" {
		return
	}
	at := slices.IndexFunc(s.rules, func(r resourceRule) bool {
		return (!r.author || first.Upstream != "") && r.covers(second) && !r.covers(first)
	})
	if at < 0 || !inPlace() {
		return
	}
	rule := &s.rules[at]
	for _, offered := range []*Item{first, second} {
		if offered.Upstream != "" {
			s.exclude(offered, fmt.Sprintf("with it one would be read in the place of another resource that the %s %q is about", rule.kind, rule.name))
			return
		}
	}
	pair := [2]diag.Range{first.Where, second.Where}
	if s.reported[pair] {
		return // of another file of a folder
	}
	s.reported[pair] = true
	s.found = append(s.found, diag.Diagnostic{
		Code: "shadowed-rule", Range: first.Where,
		Summary: fmt.Sprintf("%s %q is read in the place of %s %q, which the operator's %s %q is about", first.Kind, first.Name, second.Kind, second.Name, rule.kind, rule.name),
		Detail:  fmt.Sprintf("choose another URI, or ask the operator to name %q in the %s, too", first.Name, rule.kind),
		Notes:   []diag.Note{{Range: second.Where, Message: fmt.Sprintf("%s %q", second.Kind, second.Name)}},
	})
}

// overlapSteps is how long it may take to learn which templates have no URI in common:
// those of which it is not known then are taken to have one.
const overlapSteps = 2_000_000

func mayOverlap(a, b *uritemplate.Template, steps *int) bool {
	if !strings.HasPrefix(a.Prefix(), b.Prefix()) && !strings.HasPrefix(b.Prefix(), a.Prefix()) {
		return false
	}
	return a.Overlaps(b, steps) || *steps <= 0
}

// resourceRule is a policy, a limit or a hook, as it is called, and the resources that it is
// about. Author says that it is no rule of the operator's file.
type resourceRule struct {
	kind, name string
	targets    definition.Targets
	author     bool
}

func (r *resourceRule) covers(i *Item) bool { return covers(r.targets, i.Kind, i.Name) }

// resourceRules returns those that are about some resources and not about others.
func resourceRules(found *build) (rules []resourceRule) {
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
	addAll(found.config.Policies, found.config.RateLimits, found.config.Hooks)
	author = true
	addAll(found.policies, found.limits, found.hookDefs)
	return rules
}

// duplicateFile reports a file of a folder whose URI a file of another folder has,
// once for each two folders. That of a resource block is meant to win, and two
// folders of one prefix configcheck has reported.
func (k *linker) duplicateFile(first, second *Item) {
	if first.folder == nil || second.folder == nil || first.folder.URIPrefix == second.folder.URIPrefix {
		return
	}
	pair := [2]*definition.Folder{first.folder, second.folder}
	if k.reportedFolders[pair] {
		return
	}
	k.reportedFolders[pair] = true
	k.found.report(diag.List{{
		Code: "duplicate-uri", Range: second.folder.PrefixRange,
		Summary: fmt.Sprintf("files of the folders %q and %q have the same URI, %q", first.Name, second.Name, first.Address),
		Detail:  "change one of the two prefixes, or exclude the file from one of the folders",
		Notes:   []diag.Note{{Range: first.folder.PrefixRange, Message: "the prefix of the other folder"}},
	}})
}
