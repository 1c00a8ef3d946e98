package schema

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// arrayRule holds the rules of an array.
type arrayRule struct {
	min, max int
	unique   bool
	prefix   []*node
	// items applies to items after the prefix; nil accepts anything.
	items    *node
	contains *containsRule
}

// containsRule bounds the number of items that match a node.
type containsRule struct {
	node     *node
	min, max int
}

func (a *arrayRule) check(list []any, r *run) bool {
	ok := true
	if len(list) < a.min {
		ok = r.reject(func() string { return count(a.min, leastCount, "item") })
	}
	if len(list) > a.max {
		ok = r.reject(func() string { return count(a.max, mostCount, "item") })
	}
	if (ok || r.explain) && (a.items != nil || len(a.prefix) > 0) {
		ok = a.checkItems(list, r) && ok
	}
	if a.unique && (ok || r.explain) {
		ok = a.checkUnique(list, r) && ok
	}
	if a.contains != nil && (ok || r.explain) {
		ok = a.contains.check(list, r) && ok
	}
	return ok
}

func (a *arrayRule) checkItems(list []any, r *run) bool {
	ok := true
	for i, v := range list {
		n := a.items
		if i < len(a.prefix) {
			n = a.prefix[i]
		}
		r.enter(item(i))
		fits := n.check(v, r)
		r.leave()
		if ok = fits && ok; !ok && !r.explain {
			break
		}
	}
	return ok
}

// checkUnique compares the canonical bytes of items, in time linear in the size of the array.
func (a *arrayRule) checkUnique(list []any, r *run) bool {
	if len(list) < 2 {
		return true
	}
	seen := make(map[string]int, len(list))
	for i, v := range list {
		spelled := r.canonical(v)
		if !r.step(1 + len(spelled)/8) {
			return false
		}
		if j, again := seen[string(spelled)]; again {
			return r.reject(func() string { return fmt.Sprintf(equalItems, j, i) })
		}
		seen[string(spelled)] = i
	}
	return true
}

func (c *containsRule) check(list []any, r *run) bool {
	n := 0
	for _, v := range list {
		if r.checkOnly(c.node, v) {
			n++
		}
		if r.exhausted() {
			return false
		}
		if n >= c.min && c.max == math.MaxInt {
			return true
		}
	}
	ok := true
	if n < c.min {
		ok = r.reject(func() string { return count(c.min, leastCount, "item") + " " + thatFits })
	}
	if n > c.max {
		ok = r.reject(func() string { return count(c.max, mostCount, "item") + " " + thatFits })
	}
	return ok
}

// canonical returns bytes that are equal exactly for equal values: members are sorted, and
// numbers are encoded by value. The bytes are valid until the next call.
func (r *run) canonical(v any) []byte {
	r.scratch = appendCanonical(r.scratch[:0], v)
	return r.scratch
}

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
	case float64:
		if v == math.Trunc(v) && v >= -edge && v < edge {
			return appendCanonical(b, int64(v))
		}
		if r := rational(v); r != nil && r.IsInt() {
			return appendCanonical(b, r.Num())
		}
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case *big.Int:
		return appendCanonicalString(append(b, 'b'), v.String())
	case string:
		return appendCanonicalString(append(b, '"'), v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = appendCanonical(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range sortedNames(v) {
			b = appendCanonical(appendCanonicalString(b, name), v[name])
		}
		return append(b, '}')
	}
	return append(b, 'n')
}

// appendCanonicalString appends a string after its length, so that sequences of strings are
// unambiguous.
func appendCanonicalString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// objectRule holds the rules of an object.
type objectRule struct {
	min, max int
	// members are the rules of the declared members.
	members map[string]*node
	// declared are the sorted names of the members.
	declared []string
	required []string
	// discriminators are the members with few possible values, which distinguish alternatives.
	discriminators []string
	patterns       []patternRule
	// rest applies to other members; nil accepts anything.
	rest *node
	// names applies to the name of each member; nil accepts anything.
	names *node
	// dependentRequired are the members that other members require.
	dependentRequired []dependentRequired
}

// patternRule applies to members with matching names.
type patternRule struct {
	pattern *pattern
	node    *node
}

// dependentRequired lists the members that another member requires.
type dependentRequired struct {
	name     string
	required []string
}

func (o *objectRule) check(object map[string]any, r *run) bool {
	ok := true
	if len(object) < o.min {
		ok = r.reject(func() string { return count(o.min, leastCount, "member") })
	}
	if len(object) > o.max {
		ok = r.reject(func() string { return count(o.max, mostCount, "member") })
	}
	if len(o.dependentRequired) > 0 && !r.step(len(o.dependentRequired)) {
		return false
	}
	ok = o.checkRequired(object, o.required, "", r) && ok
	for i := range o.dependentRequired {
		if _, there := object[o.dependentRequired[i].name]; there {
			ok = o.checkRequired(object, o.dependentRequired[i].required, o.dependentRequired[i].name, r) && ok
		}
	}
	if (ok || r.explain) && (o.members != nil || o.patterns != nil || o.rest != nil || o.names != nil) {
		ok = o.checkMembers(object, r) && ok
	}
	return ok
}

// checkRequired checks that the required members are present. because is the member that
// requires them, or "".
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
			r.add(mismatch{message: isRequired})
		} else {
			r.add(mismatch{message: fmt.Sprintf(requiredBy, because)})
		}
		r.leave()
	}
	return ok
}

// checkMembers checks each member. In explain mode, it checks them in name order.
func (o *objectRule) checkMembers(object map[string]any, r *run) bool {
	if !r.explain {
		if !o.checkDiscriminators(object, r) {
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

// checkDiscriminators checks the discriminators, so that a wrong alternative is rejected before
// its other members are checked.
func (o *objectRule) checkDiscriminators(object map[string]any, r *run) bool {
	ok := true
	for _, name := range o.discriminators {
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
		return r.reject(func() string { return o.unknown(name, object, r) })
	default:
		ok = o.rest.check(v, r) && ok
	}
	return ok
}

func (o *objectRule) checkName(name string, r *run) bool {
	if !r.explain {
		return o.names.check(name, r)
	}
	faults := r.collect(func() { o.names.check(name, r) })
	for _, f := range faults {
		r.add(mismatch{message: badName + f.message})
	}
	return len(faults) == 0
}
