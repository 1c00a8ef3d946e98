package schema

import "math/big"

// A node is the rules of one part of a schema. Nodes may form circles through
// references; they are fixed once compiled.
type node struct {
	// never is the schema false.
	never bool
	types types
	// choice is the rule of enum and const.
	choice *choice
	number *numberRule
	text   *textRule
	list   *listRule
	object *objectRule
	// forms are the rules that hold the same value against other nodes.
	forms *forms
}

// check reports whether the rules hold for v, and when the run explains adds
// a fault for each that does not. What else is wrong with a value of the wrong
// type, or that is not among the listed ones, is of no interest.
func (n *node) check(v any, r *run) bool {
	if n == nil {
		return true
	}
	if !r.step(1) || r.full() {
		return false
	}
	if n.never {
		return r.refuse(func() string { return notAllowed })
	}
	if got := typeOf(v); !n.types.admits(got) {
		if r.explain {
			r.add(fault{message: n.types.mustBe(got), want: n.types, got: got})
		}
		return false
	}
	if n.choice != nil && !n.choice.has(v, r) {
		if r.explain {
			r.add(fault{message: n.choice.wordsFor(v, r), choice: true})
		}
		return false
	}
	ok := n.checkKind(v, r)
	if n.forms != nil && (ok || r.explain) {
		ok = n.forms.check(v, r) && ok
	}
	return ok
}

// checkKind checks the rules for the kind of value that v is.
func (n *node) checkKind(v any, r *run) bool {
	switch v := v.(type) {
	case string:
		return n.text == nil || n.text.check(v, r)
	case int64:
		return n.number == nil || n.number.check(v, r)
	case *big.Int:
		return n.number == nil || n.number.check(v, r)
	case float64:
		return n.number == nil || n.number.check(v, r)
	case []any:
		return n.list == nil || n.list.check(v, r)
	case map[string]any:
		return n.object == nil || n.object.check(v, r)
	}
	return true
}
