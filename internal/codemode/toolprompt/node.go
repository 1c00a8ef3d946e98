package toolprompt

import (
	"encoding/json"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The bounds of a schema. One that is larger is unknown; what is nested deeper, or
// comes behind that many values, is.
const (
	maxSchema  = 256 << 10 // bytes
	maxNodes   = 20_000    // values
	maxNesting = 64        // lists and objects in each other
)

// kind is what a JSON value is. Of the zero kind nothing is known.
type kind int

const (
	unknownKind kind = iota
	nullKind
	trueKind
	falseKind
	numberKind
	textKind
	listKind
	objectKind

	kinds = int(objectKind) + 1
)

// node is a JSON value whose members are in the order in which they were written.
type node struct {
	kind kind
	// raw is the value as it was written.
	raw string
	// text is the value of a text.
	text  string
	items []node
	// names are those of the members that items holds, each once.
	names []string
	// places are where the names stand, nil while there are few.
	indexes map[string]int
}

// few is how many names are looked through one by one.
const linearSearchMax = 12

// member returns a member of an object, and nil if there is none.
func (n *node) member(name string) *node {
	if i := n.index(name); i >= 0 {
		return &n.items[i]
	}
	return nil
}

// of returns a member that is of a kind, and nil if there is none.
func (n *node) memberOfKind(k kind, name string) *node {
	if m := n.member(name); m != nil && m.kind == k {
		return m
	}
	return nil
}

// say returns the value of a member that is a text, and nothing if there is none.
func (n *node) stringMember(name string) string {
	if m := n.memberOfKind(textKind, name); m != nil {
		return m.text
	}
	return ""
}

func (n *node) isTrue(name string) bool { return n.memberOfKind(trueKind, name) != nil }

func (n *node) index(name string) int {
	if n.indexes != nil {
		if i, ok := n.indexes[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.names {
		if n.names[i] == name {
			return i
		}
	}
	return -1
}

// put gives the object a member. The last of a name counts.
func (n *node) set(name string, value node) {
	if i := n.index(name); i >= 0 {
		n.items[i] = value
		return
	}
	n.names = append(n.names, name)
	n.items = append(n.items, value)
	switch {
	case n.indexes != nil:
		n.indexes[name] = len(n.names) - 1
	case len(n.names) > linearSearchMax:
		n.indexes = make(map[string]int, 2*linearSearchMax)
		for i, name := range n.names {
			n.indexes[name] = i
		}
	}
}

// read returns the value of a JSON text; nothing of what is none, or too large.
func parseNode(raw json.RawMessage) node {
	if len(raw) > maxSchema || !json.Valid(raw) {
		return node{}
	}
	r := reader{in: jsontext.At(raw), src: string(raw)}
	return r.value(0)
}

type reader struct {
	in    jsontext.Cursor
	src   string
	nodes int
}

// value reads a value. It recurses to [maxNesting].
func (r *reader) value(depth int) node {
	c, start := r.in.Next(), r.in.Offset()
	var n node
	r.nodes++
	switch {
	case c != '{' && c != '[':
		n.kind, n.raw = kindBy(c), r.scalar()
		if c == '"' {
			n.text = unquote(n.raw)
		}
		return n
	case depth == maxNesting || r.nodes > maxNodes:
		r.in.Value()
	default:
		n.kind = kindBy(c)
		r.children(&n, c, depth)
	}
	n.raw = r.src[start:r.in.Offset()]
	return n
}

func kindBy(c byte) kind {
	switch c {
	case '{':
		return objectKind
	case '[':
		return listKind
	case '"':
		return textKind
	case 't':
		return trueKind
	case 'f':
		return falseKind
	case 'n':
		return nullKind
	}
	return numberKind
}

// inside reads the members or items of the object or list that begins here.
func (r *reader) children(n *node, open byte, depth int) {
	r.in.Skip(open)
	for r.in.More(open + 2) { // in ASCII, ] stands two behind [, and } behind {
		name := ""
		if open == '{' {
			name = unquote(r.scalar())
		}
		value := r.value(depth + 1)
		switch {
		case r.nodes > maxNodes:
		case open == '{':
			n.set(name, value)
		default:
			n.items = append(n.items, value)
		}
	}
}

// scalar returns a value that is no list or object, as it was written.
func (r *reader) scalar() string {
	start := r.in.Offset()
	r.in.Value()
	return r.src[start:r.in.Offset()]
}

func unquote(written string) (value string) {
	if strings.IndexByte(written, '\\') < 0 {
		return strings.ToValidUTF8(written[1:len(written)-1], "\uFFFD")
	}
	_ = json.Unmarshal([]byte(written), &value) // the text is valid JSON
	return value
}

// Detail is how much declarations tell. Each tells what the one before does but for
// one thing, which is left out of all tools alike.
type Detail int

const (
	// Full tells everything.
	Full Detail = iota
	// WithoutConstraints leaves out what values are held to beyond their types.
	WithoutConstraints
	// WithoutMembers leaves out the descriptions of members.
	WithoutMembers
	// WithoutResults leaves out the types of results.
	WithoutResults
	// FirstSentences leaves out all but the first sentences of descriptions.
	FirstSentences
	// WithoutArguments leaves out the types of arguments.
	WithoutArguments
	// NamesOnly leaves out all but names.
	NamesOnly
)

// leftOut names, for each detail between [Full] and [NamesOnly], what it leaves out.
var omissions = [...]string{
	WithoutConstraints: "the constraints of values",
	WithoutMembers:     "the descriptions of members",
	WithoutResults:     "the types of results",
	FirstSentences:     "all but the first sentences of descriptions",
	WithoutArguments:   "the types of arguments",
}

// LeftOut names what declarations of the detail leave out, in the order in which it
// is given up; nothing for [Full].
func (d Detail) Omissions() []string {
	switch {
	case d <= Full:
		return nil
	case d >= NamesOnly:
		return []string{"everything but the names"}
	}
	return append([]string(nil), omissions[WithoutConstraints:d+1]...)
}

type shape struct {
	text string
	// binds is the operator that holds the text together: '|', '&', or 0 of none.
	operator byte
}

var (
	unknown = shape{text: "unknown"}
	never   = shape{text: "never"}
	isNull  = shape{text: "null"}
	// anyObject is an object of which nothing more is known.
	anyObject = shape{text: "{ [name: string]: unknown }"}
)

// within returns the text of the type as an operand of an operator.
func (s shape) operand(operator byte) string {
	if s.operator == 0 || s.operator == operator || s.operator == '&' && operator == '|' {
		return s.text
	}
	return "(" + s.text + ")"
}

// unite returns the type of values that are of one of the types at least.
func union(shapes ...shape) shape { return joinTypes('|', unknown, never, shapes) }

// intersect returns the type of values that are of all of the types.
func intersection(shapes ...shape) shape { return joinTypes('&', never, unknown, shapes) }

// join puts an operator between types. One that is the zero of the operator is all
// that is left, and those that are its one are left out, as are repetitions.
func joinTypes(operator byte, zero, one shape, shapes []shape) shape {
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
		texts[i] = s.operand(operator)
	}
	return shape{text: strings.Join(texts, " "+string(operator)+" "), operator: operator}
}

func arrayOf(s shape) string { return s.operand('[') + "[]" }
