package schema

import (
	"math"
	"math/big"
	"strings"
)

const (
	// patience is how many steps a validation may take, beside one for each
	// byte of the text. A step is some 25 ns of work. No value takes as many with
	// a schema that does not multiply the work itself.
	patience = 300_000
	// costOfFault and costOfBranch are the steps that it takes to explain.
	costOfFault  = 40
	costOfBranch = 40
)

// A run holds one value against a schema: first without explaining, which
// ends at the first thing wrong and costs no memory, and only when there is
// one a second time, for the list of all of them.
type run struct {
	// left is how many steps are left.
	left int
	// explain says that every mistake is wanted, with its place.
	explain bool
	path    location
	faults  []fault
	// arguments says that the value is the arguments of a call.
	arguments bool
	// suggested counts the similar names that were looked for.
	suggested int
	// scratch is for spelling values.
	scratch []byte
}

// A fault is a mistake in a value, and what tells one alternative of a schema
// from another.
type fault struct {
	path, message string
	// want are the types that the value should have had, for a mistake in type.
	want types
	// got is the type that it has.
	got types
	// choice says that the value is none of those that are listed.
	choice bool
}

// mostFaults bounds how many faults are collected.
const mostFaults = 200

// step counts n steps, and reports false when there are none left.
func (r *run) step(n int) bool {
	r.left -= n
	return r.left > 0
}

// exhausted reports whether the run ended before it found an answer.
func (r *run) exhausted() bool { return r.left <= 0 }

// enter goes on to a part of the value; leave comes back.
func (r *run) enter(s segment) {
	if r.explain {
		r.path = append(r.path, s)
	}
}

func (r *run) leave() {
	if r.explain {
		r.path = r.path[:len(r.path)-1]
	}
}

// refuse notes a mistake at the present place. It returns false, the outcome
// of the check that found it.
func (r *run) refuse(message func() string) bool {
	if r.explain {
		r.add(fault{message: message()})
	}
	return false
}

func (r *run) add(f fault) {
	if r.step(costOfFault) && !r.full() {
		f.path = r.path.pointer()
		r.faults = append(r.faults, f)
	}
}

// full reports whether enough faults have been collected.
func (r *run) full() bool { return len(r.faults) >= mostFaults }

// quietly runs a check without explaining.
func (r *run) quietly(n *node, v any) bool {
	explain := r.explain
	r.explain = false
	ok := n.check(v, r)
	r.explain = explain
	return ok
}

// apart runs checks and returns their faults rather than collecting them.
func (r *run) apart(checks func()) []fault {
	before := r.faults
	r.faults = nil
	if r.step(costOfBranch) {
		checks()
	}
	found := r.faults
	r.faults = before
	return found
}

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

// types is a set of the types of JSON Schema.
type types uint8

const (
	nullType types = 1 << iota
	booleanType
	integerType
	numberType
	stringType
	arrayType
	objectType
)

// typeNames are the names of the types, in the order of their bits.
var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typeNamed returns the type of the given name, or 0 when there is none.
func typeNamed(name string) types {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// typeOf returns the type of a decoded value. Every integer is a number too,
// but integerType alone stands for it.
func typeOf(v any) types {
	switch v := v.(type) {
	case bool:
		return booleanType
	case int64, *big.Int:
		return integerType
	case float64:
		if v == math.Trunc(v) {
			return integerType
		}
		return numberType
	case string:
		return stringType
	case []any:
		return arrayType
	case map[string]any:
		return objectType
	}
	return nullType
}

// admits reports whether the set holds the type of a value. The empty set
// holds every type.
func (t types) admits(of types) bool {
	if t&numberType != 0 {
		t |= integerType
	}
	return t == 0 || t&of != 0
}

// words are the types with their articles, as in "an object".
func (t types) words() []string {
	if t&numberType != 0 {
		t &^= integerType
	}
	var list []string
	for i, name := range typeNames {
		switch {
		case t&(1<<i) == 0:
		case name == "null":
			list = append(list, name)
		default:
			list = append(list, article(name))
		}
	}
	return list
}

// mustBe says what a value must be in the place of one of the type got.
func (t types) mustBe(got types) string {
	words := t.words()
	if t.admits(nullType) { // the likeliest last
		words = append(words[1:], words[0])
	}
	message := "must be " + join(words, "or")
	switch {
	case t&integerType != 0 && got == numberType:
		return message + ", not a fraction"
	case got == 0:
		return message
	case got == integerType:
		got = numberType
	}
	return message + ", not " + got.words()[0]
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// join lists words, as in "a, b or c".
func join(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
