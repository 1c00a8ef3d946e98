package schema

import "reflect"

// coverage describes the members and items that the keywords of a node apply to. Nodes have a
// coverage only in schemas with unevaluatedProperties or unevaluatedItems.
type coverage struct {
	members  map[string]bool
	patterns []*pattern
	prefix   int
	contains *node
	// allMembers and allItems mean that a keyword applies to all remaining ones.
	// unevaluatedMembers and unevaluatedItems mean that it is a keyword of this node.
	allMembers, allItems                 bool
	unevaluatedMembers, unevaluatedItems bool
	// memberRule and itemRule are the values of unevaluatedProperties and unevaluatedItems; nil
	// accepts anything.
	memberRule, itemRule *node
	// declared are the members to suggest for an unknown one.
	declared []string
}

// coverageOf returns the coverage of a subschema, or nil if no keyword needs it.
func (c *compiler) coverageOf(sub *subschema) *coverage {
	if !c.unevaluated {
		return nil
	}
	cov := &coverage{members: map[string]bool{}}
	for _, s := range sub.children["properties"] {
		cov.members[s.name] = true
	}
	for _, s := range sub.children["patternProperties"] {
		cov.patterns = append(cov.patterns, c.patterns[s.name])
	}
	prefix, rest := sub.items()
	cov.prefix, cov.allItems = len(prefix), rest != nil
	cov.allMembers = sub.single("additionalProperties") != nil
	if contains := sub.single("contains"); contains != nil && sub.dialect >= draft2020 {
		if cov.contains = c.build(contains); cov.contains == nil {
			cov.allItems = true
		}
	}
	if rule := sub.single("unevaluatedProperties"); rule != nil {
		cov.unevaluatedMembers, cov.memberRule = true, c.build(rule)
		cov.declared = c.declaredIn(sub)
	}
	if rule := sub.single("unevaluatedItems"); rule != nil {
		cov.unevaluatedItems, cov.itemRule = true, c.build(rule)
	}
	return cov
}

// maxDeclaredLookups bounds the nodes with a list of declared members, which is only for
// messages: each list may contain the messages of all nodes below.
const maxDeclaredLookups = 64

// declaredIn returns the names to suggest for an unknown member of a subschema.
func (c *compiler) declaredIn(sub *subschema) []string {
	if c.declaredLookups++; c.declaredLookups > maxDeclaredLookups {
		return nil
	}
	names := sortedNames(c.planFor(sub).members)
	return names[:min(len(names), maxCandidates)]
}

// checkUnevaluated checks the members or items of v that no other keyword applies to. v must
// satisfy the other rules of the node.
func (n *node) checkUnevaluated(v any, r *run) bool {
	c, ok := n.coverage, true
	switch v := v.(type) {
	case map[string]any:
		if !c.unevaluatedMembers || c.allMembers {
			return true
		}
		seen := evaluated{members: map[string]bool{}}
		n.evaluate(v, &seen, n, r)
		for _, name := range sortedNames(v) {
			if seen.all || seen.members[name] || r.exhausted() {
				continue
			}
			r.enter(member(name))
			if c.memberRule != nil && c.memberRule.never {
				ok = r.reject(func() string { return r.unknown(name, c.declared) })
			} else {
				ok = c.memberRule.check(v[name], r) && ok
			}
			r.leave()
		}
	case []any:
		if !c.unevaluatedItems || c.allItems {
			return true
		}
		seen := evaluated{items: make([]bool, len(v))}
		n.evaluate(v, &seen, n, r)
		for i, inner := range v {
			if seen.all || seen.items[i] || r.exhausted() {
				continue
			}
			r.enter(item(i))
			ok = c.itemRule.check(inner, r) && ok
			r.leave()
		}
	}
	return ok && !r.exhausted()
}

// evaluated collects the members or items that keywords apply to.
type evaluated struct {
	all     bool
	members map[string]bool
	items   []bool
}

// evaluate collects the members or items that the node, and the nodes for the same value, apply
// to. The value must be valid. owner is the node with the unevaluated keyword.
func (n *node) evaluate(v any, seen *evaluated, owner *node, r *run) {
	if n == nil || seen.all || !r.step(1) {
		return
	}
	defer r.leaveResource(r.enterResource(n))
	switch v := v.(type) {
	case map[string]any:
		n.coverage.evaluateMembers(v, seen, n == owner, r)
	case []any:
		n.coverage.evaluateItems(v, seen, n == owner, r)
	}
	for _, inner := range n.applicators.applied(v, r) {
		inner.evaluate(v, seen, owner, r)
	}
}

func (c *coverage) evaluateMembers(object map[string]any, seen *evaluated, own bool, r *run) {
	if c == nil || !r.step(len(object)) {
		return
	}
	seen.all = seen.all || c.allMembers || c.unevaluatedMembers && !own
	for name := range object {
		for _, p := range c.patterns {
			seen.members[name] = seen.members[name] || r.step(p.cost(len(name))) && p.MatchString(name)
		}
		seen.members[name] = seen.members[name] || c.members[name]
	}
}

func (c *coverage) evaluateItems(list []any, seen *evaluated, own bool, r *run) {
	if c == nil || !r.step(len(list)) {
		return
	}
	seen.all = seen.all || c.allItems || c.unevaluatedItems && !own
	for i, v := range list {
		seen.items[i] = seen.items[i] || i < c.prefix || c.contains != nil && r.checkOnly(c.contains, v)
	}
}

// applied returns the nodes of the applicators that v satisfies. v must satisfy the
// applicators.
func (a *applicators) applied(v any, r *run) []*node {
	if a == nil {
		return nil
	}
	list := a.all[:len(a.all):len(a.all)]
	for _, alternatives := range [][]*node{a.any, a.one} {
		for _, n := range alternatives {
			if r.checkOnly(n, v) {
				list = append(list, n)
			}
		}
	}
	if a.when != nil {
		if r.checkOnly(a.when.test, v) {
			list = append(list, a.when.test, a.when.then)
		} else {
			list = append(list, a.when.otherwise)
		}
	}
	if object, is := v.(map[string]any); is {
		for _, d := range a.dependent {
			if _, there := object[d.name]; there {
				list = append(list, d.node)
			}
		}
	}
	if a.dynamic != nil {
		list = append(list, a.dynamic.target(r))
	}
	return list
}

// checkKey identifies a check of an object or array by a node.
type checkKey struct {
	node  *node
	value uintptr
	size  int
}

// keyOf returns the key of a repeated check: an alternative is checked, and later asked which
// members it applies to. Without the stored result, each level of a value would double the
// work. Checks that depend on the entered resources have no key.
func (n *node) keyOf(v any) (key checkKey, ok bool) {
	if n == nil || n.coverage == nil || n.scoped {
		return checkKey{}, false
	}
	switch v.(type) {
	case map[string]any, []any:
		value := reflect.ValueOf(v)
		return checkKey{n, value.Pointer(), value.Len()}, value.Len() > 0
	}
	return checkKey{}, false
}

// dynamicRef is $dynamicRef or $recursiveRef. Its target depends on the entered resources, the
// schemas with a URI.
type dynamicRef struct {
	// static is the target without dynamic scope.
	static *node
	// byResource are the targets by resource; the outermost entered resource wins. It is empty
	// if the static target has no dynamic anchor.
	byResource map[string]*node
}

// target counts a step for each resource, because a chain of references may enter thousands.
func (d *dynamicRef) target(r *run) *node {
	if !r.step(len(r.resources)) {
		return d.static
	}
	for _, resource := range r.resources {
		if n, ok := d.byResource[resource]; ok {
			return n
		}
	}
	return d.static
}

// dynamicRefOf returns the dynamic reference of a subschema, or nil.
func (c *compiler) dynamicRefOf(sub *subschema) *dynamicRef {
	if len(sub.dynamic) == 0 {
		return nil
	}
	static := sub.dynamic[0]
	ref := &dynamicRef{static: c.build(static), byResource: map[string]*node{}}
	name, dynamic := static.keys["$dynamicAnchor"]
	recursive := sub.dialect < draft2020 && static.keys["$recursiveAnchor"] == true
	if !recursive && (!dynamic || !sub.refersTo(name)) {
		return ref
	}
	for _, target := range sub.dynamic {
		if !recursive || target.keys["$recursiveAnchor"] == true {
			ref.byResource[target.base] = c.build(target)
		}
	}
	return ref
}

// enterResource enters the resource of a node, and reports whether it is a different one.
// leaveResource leaves it.
func (r *run) enterResource(n *node) (entered bool) {
	if !n.scoped || len(r.resources) > 0 && r.resources[len(r.resources)-1] == n.resource {
		return false
	}
	r.resources = append(r.resources, n.resource)
	return true
}

func (r *run) leaveResource(entered bool) {
	if entered {
		r.resources = r.resources[:len(r.resources)-1]
	}
}
