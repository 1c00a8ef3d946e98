package schema

import (
	"fmt"
	"strings"
)

// applicators are the rules that check the same value against other nodes.
type applicators struct {
	// all are references and allOf.
	all []*node
	// any and one are anyOf and oneOf.
	any, one []*node
	not      *node
	when     *condition
	// dependent are rules for objects with a certain member.
	dependent []dependent
	dynamic   *dynamicRef
}

// condition is if, then and else. Missing branches are nil.
type condition struct{ test, then, otherwise *node }

// dependent is a node for objects that have the member.
type dependent struct {
	name string
	node *node
}

func (a *applicators) check(v any, r *run) bool {
	ok := true
	for _, n := range a.all {
		if ok = n.check(v, r) && ok; !ok && !r.explain {
			return false
		}
	}
	if a.any != nil {
		ok = checkAny(a.any, v, r) && ok
	}
	if a.one != nil {
		ok = checkOne(a.one, v, r) && ok
	}
	if a.dynamic != nil && (ok || r.explain) {
		ok = a.dynamic.target(r).check(v, r) && ok
	}
	if a.not != nil && r.checkOnly(a.not, v) {
		ok = r.reject(func() string { return excluded })
	}
	if a.when != nil && (ok || r.explain) {
		ok = a.when.check(v, r) && ok
	}
	if object, is := v.(map[string]any); is && len(a.dependent) > 0 && r.step(len(a.dependent)) {
		for _, d := range a.dependent {
			if _, there := object[d.name]; there {
				ok = d.node.check(v, r) && ok
			}
		}
	}
	// A validation that gave up on a branch has no result.
	return ok && !r.exhausted()
}

func (c *condition) check(v any, r *run) bool {
	branch := c.otherwise
	if r.checkOnly(c.test, v) {
		branch = c.then
	}
	return branch == nil || branch.check(v, r)
}

func checkAny(list []*node, v any, r *run) bool {
	for _, n := range list {
		if r.checkOnly(n, v) {
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
		if r.checkOnly(n, v) {
			fits++
		}
		if fits == 2 {
			return r.reject(func() string { return ambiguous })
		}
	}
	if fits == 0 && r.explain {
		r.addAlternatives(list, v)
	}
	return fits == 1
}

// addAlternatives adds the reasons why v matches none of the nodes.
func (r *run) addAlternatives(list []*node, v any) {
	branches := make([][]mismatch, len(list))
	for i, n := range list {
		branches[i] = r.collect(func() {
			if n.discriminates(v, r) {
				n.check(v, r)
			}
		})
	}
	for _, f := range bestAlternative(r.path.pointer(), branches) {
		if !r.full() {
			r.mismatches = append(r.mismatches, f)
		}
	}
}

// discriminates checks only what distinguishes alternatives: the type, and values with few
// possibilities. If that fails, other mismatches need no explanation, and recursion ends early.
func (n *node) discriminates(v any, r *run) bool {
	if n == nil {
		return true
	}
	short := node{never: n.never, types: n.types, enum: n.enum}
	if !short.check(v, r) {
		return false
	}
	if object, is := v.(map[string]any); is && n.object != nil && !n.object.checkDiscriminators(object, r) {
		return false
	}
	if n.applicators != nil {
		for _, inner := range n.applicators.all {
			if !inner.discriminates(v, r) {
				return false
			}
		}
	}
	return true
}

// bestAlternative returns the mismatches to report for a value at the given path that matches
// none of several alternatives. If the value was clearly meant for one alternative, it returns
// the mismatches of that one; otherwise one mismatch that summarizes all.
func bestAlternative(at string, branches [][]mismatch) []mismatch {
	var near [][]mismatch
	var want, got types
	onlyTypes := true
	for _, faults := range branches {
		f := discriminatorMismatch(at, faults)
		switch {
		case f == nil:
			near = append(near, faults)
			onlyTypes = false
		case f.want != 0 && f.path == at:
			want |= f.want
			got = f.got
		default:
			onlyTypes = false
		}
	}
	switch {
	case len(near) == 1 && len(near[0]) > 0:
		return near[0]
	case onlyTypes && want != 0:
		return []mismatch{{path: at, message: want.mustBe(got), want: want, got: got}}
	}
	return []mismatch{{path: at, message: summarize(at, branches)}}
}

// discriminatorMismatch returns the mismatch which shows that the value was not meant for this
// alternative: a different type, or a different value of a discriminator. It returns nil if
// there is none.
func discriminatorMismatch(at string, faults []mismatch) *mismatch {
	for i := range faults {
		f := &faults[i]
		if f.path == at && (f.want != 0 || f.choice) {
			return f
		}
		inner, below := strings.CutPrefix(f.path, at+"/")
		if below && f.choice && !strings.Contains(inner, "/") {
			return f
		}
	}
	return nil
}

// maxBranches bounds the alternatives in a summary, and maxAlternativeBytes the text for each.
const (
	maxBranches         = 5
	maxAlternativeBytes = 200
)

// summarize describes in one message why a value matches no alternative.
func summarize(at string, branches [][]mismatch) string {
	var texts []string
	for _, faults := range branches[:min(len(branches), maxBranches)] {
		for _, f := range faults[:min(len(faults), 1)] {
			words := f.message
			if inner := strings.TrimPrefix(f.path, at); inner != "" {
				words = inner + " " + words
			}
			words = clip(words, maxAlternativeBytes)
			if last := len(texts) - 1; last < 0 || texts[last] != words {
				texts = append(texts, words)
			}
		}
	}
	message := fmt.Sprintf("fits none of the %d alternatives that the schema offers", len(branches))
	if len(texts) == 0 {
		return message
	}
	message += ": " + strings.Join(texts, "; or ")
	if len(branches) > maxBranches {
		message += "; and so on"
	}
	return message
}
