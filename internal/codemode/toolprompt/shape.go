package toolprompt

import "strings"

// shape is a type of TypeScript.
type shape struct {
	text string
	// binds is the operator that holds the text together: '|', '&', or 0 of none.
	binds byte
}

var (
	unknown = shape{text: "unknown"}
	never   = shape{text: "never"}
	isNull  = shape{text: "null"}
	// anyObject is an object of which nothing more is known.
	anyObject = shape{text: "{ [name: string]: unknown }"}
)

// within returns the text of the type as an operand of an operator.
func (s shape) within(operator byte) string {
	if s.binds == 0 || s.binds == operator || s.binds == '&' && operator == '|' {
		return s.text
	}
	return "(" + s.text + ")"
}

// unite returns the type of values that are of one of the types at least.
func unite(shapes ...shape) shape { return join('|', unknown, never, shapes) }

// intersect returns the type of values that are of all of the types.
func intersect(shapes ...shape) shape { return join('&', never, unknown, shapes) }

// join puts an operator between types. One that is the zero of the operator is all
// that is left, and those that are its one are left out, as are repetitions.
func join(operator byte, zero, one shape, shapes []shape) shape {
	var kept []shape
	seen := map[string]bool{}
	for _, s := range shapes {
		switch {
		case s == zero:
			return zero
		case s == one || seen[s.text]:
			continue
		}
		seen[s.text] = true
		kept = append(kept, s)
	}
	switch len(kept) {
	case 0:
		return one
	case 1:
		return kept[0]
	}
	texts := make([]string, len(kept))
	for i, s := range kept {
		texts[i] = s.within(operator)
	}
	return shape{text: strings.Join(texts, " "+string(operator)+" "), binds: operator}
}

// listOf returns the type of lists of a type.
func listOf(s shape) string { return s.within('[') + "[]" }
