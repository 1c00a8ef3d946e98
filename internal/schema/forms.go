package schema

// forms are the rules that hold a value against other nodes, in place.
type forms struct {
	// all are references and allOf.
	all []*node
	// any and one are anyOf and oneOf.
	any, one []*node
	not      *node
	when     *condition
	// dependent are rules for an object that has a member.
	dependent []dependent
}

// A condition is if, then and else. Absent branches are nil.
type condition struct{ test, then, otherwise *node }

// A dependent node is for objects that have the member.
type dependent struct {
	name string
	node *node
}

func (f *forms) check(v any, r *run) bool {
	ok := true
	for _, n := range f.all {
		if ok = n.check(v, r) && ok; !ok && !r.explain {
			return false
		}
	}
	if f.any != nil {
		ok = checkAny(f.any, v, r) && ok
	}
	if f.one != nil {
		ok = checkOne(f.one, v, r) && ok
	}
	if f.not != nil && r.quietly(f.not, v) {
		ok = r.refuse(func() string { return excluded })
	}
	if f.when != nil && (ok || r.explain) {
		ok = f.when.check(v, r) && ok
	}
	if object, is := v.(map[string]any); is && len(f.dependent) > 0 && r.step(len(f.dependent)) {
		for _, d := range f.dependent {
			if _, there := object[d.name]; there {
				ok = d.node.check(v, r) && ok
			}
		}
	}
	// A run that gave up on a branch knows nothing.
	return ok && !r.exhausted()
}

func (c *condition) check(v any, r *run) bool {
	branch := c.otherwise
	if r.quietly(c.test, v) {
		branch = c.then
	}
	return branch == nil || branch.check(v, r)
}

func checkAny(list []*node, v any, r *run) bool {
	for _, n := range list {
		if r.quietly(n, v) {
			return true
		}
	}
	if r.explain {
		r.addAlternatives(list, v)
	}
	return false
}

func checkOne(list []*node, v any, r *run) bool {
	fits := 0
	for _, n := range list {
		if r.quietly(n, v) {
			fits++
		}
		if fits == 2 {
			return r.refuse(func() string { return ambiguous })
		}
	}
	if fits == 0 && r.explain {
		r.addAlternatives(list, v)
	}
	return fits == 1
}

// addAlternatives adds what keeps v from being any of the nodes.
func (r *run) addAlternatives(list []*node, v any) {
	branches := make([][]fault, len(list))
	for i, n := range list {
		branches[i] = r.apart(func() {
			if n.tells(v, r) {
				n.check(v, r)
			}
		})
	}
	for _, f := range nearest(r.path.pointer(), branches) {
		if !r.full() {
			r.faults = append(r.faults, f)
		}
	}
}

// tells checks only what tells alternatives from each other: the type, and what
// can have a few values only. When that is wrong, nothing else needs to be
// explained, and what recurses need not be gone into.
func (n *node) tells(v any, r *run) bool {
	if n == nil {
		return true
	}
	short := node{never: n.never, types: n.types, choice: n.choice}
	if !short.check(v, r) {
		return false
	}
	if object, is := v.(map[string]any); is && n.object != nil && !n.object.checkTelling(object, r) {
		return false
	}
	if n.forms != nil {
		for _, inner := range n.forms.all {
			if !inner.tells(v, r) {
				return false
			}
		}
	}
	return true
}
