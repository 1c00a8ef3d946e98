package schema

import "reflect"

// A coverage says which members and items of a value the keywords of a node apply to. Nodes
// have one only in schemas with unevaluatedProperties or unevaluatedItems.
type coverage struct {
	members  map[string]bool
	patterns []*pattern
	prefix   int
	contains *node
	// allMembers and allItems say that a keyword applies to the rest of them; of those,
	// unevaluatedMembers and unevaluatedItems are keywords of the node itself.
	allMembers, allItems                 bool
	unevaluatedMembers, unevaluatedItems bool
	// members and items of unevaluatedProperties and unevaluatedItems; nil is anything.
	memberRule, itemRule *node
	// declared are the members that may be meant by an unknown one.
	declared []string
}

// coverageOf returns the coverage of a part, and nil where no keyword asks for it.
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

// mostDeclared bounds how many nodes know their declared members, which only messages use:
// each may have those of all nodes below it.
const maxDeclaredLookups = 64

// declaredIn returns the names that a message suggests for an unknown member of a part.
func (d *compiler) declaredIn(p *subschema) []string {
	if d.declaredLookups++; d.declaredLookups > maxDeclaredLookups {
		return nil
	}
	names := sortedNames(d.planFor(p).members)
	return names[:min(len(names), maxCandidates)]
}

// checkUnevaluated checks the members or items of v that no other keyword applies to. The
// other rules of the node hold for v.
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

// evaluated collects the members or items of a value that keywords apply to.
type evaluated struct {
	all     bool
	members map[string]bool
	items   []bool
}

// evaluate collects what the node and the nodes that it holds against the same value apply
// to. The value fits the node. The owner is the node whose unevaluated members or items are
// looked for.
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

// applied returns the nodes that the forms hold v against and that it fits, where v fits the
// forms.
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

// A checkKey is a node and an object or array that is held against it.
type checkKey struct {
	node  *node
	value uintptr
	size  int
}

// keyOf returns the key of a check that is made more than once: an alternative is checked
// and later asked what it applies to. Without the outcome of the first time, each level of a
// value would double the work. What depends on the resources that were entered has none.
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

// A dynamicRef is $dynamicRef or $recursiveRef: what it refers to depends on the schemas
// with a URI of their own, the resources, that the run has entered.
type dynamicRef struct {
	// static is what it refers to by itself.
	static *node
	// byResource are the nodes that it refers to in the outermost of these resources; there
	// are none where the static one has no dynamic anchor.
	byResource map[string]*node
}

// target takes a step for each resource: a chain of references enters thousands.
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

// dynamicRefOf returns the dynamic reference of a part, or nil.
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

// enterResource notes that the run goes on in the resource of a node, and reports whether it
// is another one; leaveResource comes back.
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
