package schema

import "fmt"

// An objectRule is what an object must be.
type objectRule struct {
	min, max int
	// members are the rules of the declared members.
	members map[string]*node
	// declared are the names of the members, sorted.
	declared []string
	required []string
	// telling are the members that can have a few values only: what tells one
	// alternative from another.
	telling  []string
	patterns []patternRule
	// rest is for members that nothing else speaks of; nil is anything.
	rest *node
	// names is what the name of each member must be; nil is anything.
	names *node
	// needs are the members that the presence of another requires.
	needs []need
}

// A patternRule is for the members whose names match.
type patternRule struct {
	pattern *pattern
	node    *node
}

// A need says which members must be there when another is.
type need struct {
	name     string
	required []string
}

func (o *objectRule) check(object map[string]any, r *run) bool {
	ok := true
	if len(object) < o.min {
		ok = r.refuse(func() string { return count(o.min, leastCount, "member") })
	}
	if len(object) > o.max {
		ok = r.refuse(func() string { return count(o.max, mostCount, "member") })
	}
	if len(o.needs) > 0 && !r.step(len(o.needs)) {
		return false
	}
	ok = o.checkRequired(object, o.required, "", r) && ok
	for i := range o.needs {
		if _, there := object[o.needs[i].name]; there {
			ok = o.checkRequired(object, o.needs[i].required, o.needs[i].name, r) && ok
		}
	}
	if (ok || r.explain) && (o.members != nil || o.patterns != nil || o.rest != nil || o.names != nil) {
		ok = o.checkMembers(object, r) && ok
	}
	return ok
}

// checkRequired checks that the required members are there, because of another
// member when it has a name.
func (o *objectRule) checkRequired(object map[string]any, required []string, because string, r *run) bool {
	ok := true
	for _, name := range required {
		if _, there := object[name]; there {
			continue
		}
		if ok = false; !r.explain || r.full() {
			return false
		}
		r.enter(member(name))
		if because == "" {
			r.add(fault{message: isRequired})
		} else {
			r.add(fault{message: fmt.Sprintf(requiredBy, because)})
		}
		r.leave()
	}
	return ok
}

// checkMembers checks each member, in the order of their names when the run
// explains.
func (o *objectRule) checkMembers(object map[string]any, r *run) bool {
	if !r.explain {
		if !o.checkTelling(object, r) {
			return false
		}
		for name, v := range object {
			if !o.checkMember(object, name, v, r) {
				return false
			}
		}
		return true
	}
	ok := true
	for _, name := range sortedNames(object) {
		r.enter(member(name))
		ok = o.checkMember(object, name, object[name], r) && ok
		r.leave()
	}
	return ok
}

// checkTelling checks the telling members, so that an alternative that is not
// meant is left before its other members are gone into.
func (o *objectRule) checkTelling(object map[string]any, r *run) bool {
	ok := true
	for _, name := range o.telling {
		v, there := object[name]
		if !there {
			continue
		}
		r.enter(member(name))
		ok = o.members[name].check(v, r) && ok
		r.leave()
	}
	return ok
}

func (o *objectRule) checkMember(object map[string]any, name string, v any, r *run) bool {
	ok, spoken := true, false
	if o.names != nil {
		ok = o.checkName(name, r)
	}
	if n, declared := o.members[name]; declared {
		spoken = true
		ok = n.check(v, r) && ok
	}
	for _, p := range o.patterns {
		if !r.step(p.pattern.cost(len(name))) {
			return false
		}
		if p.pattern.MatchString(name) {
			spoken = true
			ok = p.node.check(v, r) && ok
		}
	}
	switch {
	case spoken || o.rest == nil:
	case o.rest.never:
		return r.refuse(func() string { return o.unknown(name, object, r) })
	default:
		ok = o.rest.check(v, r) && ok
	}
	return ok
}

func (o *objectRule) checkName(name string, r *run) bool {
	if !r.explain {
		return o.names.check(name, r)
	}
	faults := r.apart(func() { o.names.check(name, r) })
	for _, f := range faults {
		r.add(fault{message: badName + f.message})
	}
	return len(faults) == 0
}
