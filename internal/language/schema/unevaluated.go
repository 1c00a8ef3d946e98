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
func (d *compiler) coverageOf(p *subschema) *coverage {
	if !d.unevaluated {
		return nil
	}
	c := &coverage{members: map[string]bool{}}
	for _, s := range p.children["properties"] {
		c.members[s.name] = true
	}
	for _, s := range p.children["patternProperties"] {
		c.patterns = append(c.patterns, d.patterns[s.name])
	}
	prefix, rest := p.items()
	c.prefix, c.allItems = len(prefix), rest != nil
	c.allMembers = p.single("additionalProperties") != nil
	if contains := p.single("contains"); contains != nil && p.dialect >= draft2020 {
		if c.contains = d.build(contains); c.contains == nil {
			c.allItems = true
		}
	}
	if rule := p.single("unevaluatedProperties"); rule != nil {
		c.unevaluatedMembers, c.memberRule = true, d.build(rule)
		c.declared = d.declaredIn(p)
	}
	if rule := p.single("unevaluatedItems"); rule != nil {
		c.unevaluatedItems, c.itemRule = true, d.build(rule)
	}
	return c
}

// maxDeclaredLookups bounds the nodes with a list of declared members, which is only for
// messages: each list may contain those of all nodes below.
const maxDeclaredLookups = 64

// declaredIn returns the names to suggest for an unknown member of a subschema.
func (d *compiler) declaredIn(p *subschema) []string {
	if d.declaredLookups++; d.declaredLookups > maxDeclaredLookups {
		return nil
	}
	names := sortedNames(d.planFor(p).members)
	return names[:min(len(names), maxCandidates)]
}

// checkUnevaluated checks the members or items of v that no other keyword applies to. v must
// satisfy the other rules of the node.
func (n *node) checkUnevaluated(v any, r *validation) bool {
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
func (n *node) evaluate(v any, seen *evaluated, owner *node, r *validation) {
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

func (c *coverage) evaluateMembers(object map[string]any, seen *evaluated, own bool, r *validation) {
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

func (c *coverage) evaluateItems(list []any, seen *evaluated, own bool, r *validation) {
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
func (f *applicators) applied(v any, r *validation) []*node {
	if f == nil {
		return nil
	}
	list := f.all[:len(f.all):len(f.all)]
	for _, alternatives := range [][]*node{f.any, f.one} {
		for _, n := range alternatives {
			if r.checkOnly(n, v) {
				list = append(list, n)
			}
		}
	}
	if f.when != nil {
		if r.checkOnly(f.when.test, v) {
			list = append(list, f.when.test, f.when.then)
		} else {
			list = append(list, f.when.otherwise)
		}
	}
	if object, is := v.(map[string]any); is {
		for _, d := range f.dependent {
			if _, there := object[d.name]; there {
				list = append(list, d.node)
			}
		}
	}
	if f.dynamic != nil {
		list = append(list, f.dynamic.target(r))
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
func (d *dynamicRef) target(r *validation) *node {
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
func (d *compiler) dynamicRefOf(p *subschema) *dynamicRef {
	if len(p.dynamic) == 0 {
		return nil
	}
	static := p.dynamic[0]
	ref := &dynamicRef{static: d.build(static), byResource: map[string]*node{}}
	name, dynamic := static.keys["$dynamicAnchor"]
	recursive := p.dialect < draft2020 && static.keys["$recursiveAnchor"] == true
	if !recursive && (!dynamic || !p.refersTo(name)) {
		return ref
	}
	for _, target := range p.dynamic {
		if !recursive || target.keys["$recursiveAnchor"] == true {
			ref.byResource[target.base] = d.build(target)
		}
	}
	return ref
}

// enterResource enters the resource of a node, and reports whether it is a different one.
// leaveResource leaves it.
func (r *validation) enterResource(n *node) (entered bool) {
	if !n.scoped || len(r.resources) > 0 && r.resources[len(r.resources)-1] == n.resource {
		return false
	}
	r.resources = append(r.resources, n.resource)
	return true
}

func (r *validation) leaveResource(entered bool) {
	if entered {
		r.resources = r.resources[:len(r.resources)-1]
	}
}
