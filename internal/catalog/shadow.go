package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/uritemplate"
)

// overlapSteps is how long it may take to learn which templates have no URI in common:
// those of which it is not known then are taken to have one.
const overlapSteps = 2_000_000

// resourceRule is a policy, a limit or a hook, as it is called, and the resources that it is
// about. Author says that it is no rule of the operator's file.
type resourceRule struct {
	what, name string
	targets    hclfile.Targets
	author     bool
}

func (r *resourceRule) covers(i *Item) bool { return covers(r.targets, i.Kind, i.Name) }

// resourceRules returns those that are about some resources and not about others.
func (k *linker) resourceRules() (rules []resourceRule) {
	author := false
	add := func(what, name string, targets hclfile.Targets) {
		if len(targets.Resources) > 0 {
			rules = append(rules, resourceRule{what, name, targets, author})
		}
	}
	addAll := func(policies []hclfile.Policy, limits []hclfile.Limit, hooks []hclfile.Hook) {
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
	addAll(k.found.config.Policies, k.found.config.RateLimits, k.found.config.Hooks)
	author = true
	addAll(k.found.policies, k.found.limits, k.found.hooking)
	return rules
}

// checkShadows reports what is read in the place of another resource that a rule of the
// operator is about, and is not under that rule itself: what stands at an address would
// get past the operator by standing before what was meant. What an upstream server offers
// gets past no rule of an author either.
func (k *linker) checkShadows() {
	s := &shadows{build: k.found, rules: k.resourceRules(), told: map[[2]diag.Range]bool{}}
	if len(s.rules) == 0 {
		return
	}
	for _, pair := range k.hidden {
		s.look(pair[0], pair[1], func() bool { return true })
	}
	steps := overlapSteps
	for i, t := range k.catalog.templates {
		for _, e := range k.catalog.Entries[Resources] {
			first, second := e.Item, t.Item
			if e.Upstream != "" && k.catalog.before(t.Upstream, e.Upstream) {
				first, second = second, first
			}
			s.look(first, second, func() bool {
				if !strings.HasPrefix(e.Address, t.Offer.Template.Prefix()) {
					return false
				}
				_, ok := t.Offer.match(uritemplate.NewURI(e.Address))
				return ok
			})
		}
		for _, earlier := range k.catalog.templates[:i] {
			s.look(earlier.Item, t.Item, func() bool { return mayOverlap(earlier.Offer.Template, t.Offer.Template, &steps) })
		}
	}
	k.found.report(s.found)
}

// mayOverlap reports whether two templates may have a URI in common.
func mayOverlap(a, b *uritemplate.Template, steps *int) bool {
	if !strings.HasPrefix(a.Prefix(), b.Prefix()) && !strings.HasPrefix(b.Prefix(), a.Prefix()) {
		return false
	}
	return a.Overlaps(b, steps) || *steps <= 0
}

// shadows are the resources that are in the place of others.
type shadows struct {
	build *build
	rules []resourceRule
	told  map[[2]diag.Range]bool
	found diag.List
}

// look reports that first is read in the place of second, if it is: inPlace tells. What
// an upstream server offers is left out then, and mends nothing that a file has to.
func (s *shadows) look(first, second *Item, inPlace func() bool) {
	at := slices.IndexFunc(s.rules, func(r resourceRule) bool {
		return (!r.author || first.Upstream != "") && r.covers(second) && !r.covers(first)
	})
	if at < 0 || !inPlace() {
		return
	}
	pair := [2]diag.Range{first.Where, second.Where}
	if s.told[pair] {
		return // of another file of a folder
	}
	rule := &s.rules[at]
	for _, offered := range []*Item{first, second} {
		if offered.Upstream != "" {
			s.build.leaveOut(offered, fmt.Sprintf("with it one would be read in the place of another resource that the %s %q is about", rule.what, rule.name), offered.Where)
			return
		}
	}
	s.told[pair] = true
	s.found = append(s.found, diag.Diagnostic{
		Code: "shadowed-rule", Range: first.Where,
		Summary: fmt.Sprintf("%s %q is read in the place of %s %q, which the operator's %s %q is about", first.Kind, first.Name, second.Kind, second.Name, rule.what, rule.name),
		Detail:  fmt.Sprintf("choose another URI, or ask the operator to name %q in the %s, too", first.Name, rule.what),
		Notes:   []diag.Note{{Range: second.Where, Message: fmt.Sprintf("%s %q", second.Kind, second.Name)}},
	})
}
