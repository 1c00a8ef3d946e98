package toolprompt

import (
	"encoding/json"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The limits of a schema in a prompt.
const (
	maxSchema  = 256 << 10 // bytes
	maxNesting = 64        // nested lists and objects
)

// kind is the kind of a JSON value.
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

// node is a JSON value. Its members have the order of the source.
type node struct {
	kind kind
	// raw is the source of the value.
	raw string
	// text is the value of a string.
	text  string
	items []node
	// names are the names of the members in items, without duplicates.
	names []string
	// indexes maps names to positions; nil for few names.
	indexes map[string]int
}

// linearSearchMax is the maximum number of names for linear search.
const linearSearchMax = 12

// member returns a member of an object, or nil.
func (n *node) member(name string) *node {
	if i := n.index(name); i >= 0 {
		return &n.items[i]
	}
	return nil
}

// memberOfKind returns a member of a kind, or nil.
func (n *node) memberOfKind(k kind, name string) *node {
	if m := n.member(name); m != nil && m.kind == k {
		return m
	}
	return nil
}

// stringMember returns the value of a string member, or "".
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

// set sets a member. The last duplicate wins.
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

// parseNode parses JSON. It returns the zero node for invalid and for oversized JSON.
func parseNode(raw json.RawMessage, l limits) node {
	if len(raw) > l.schema.bytes || !json.Valid(raw) {
		return node{}
	}
	r := reader{in: jsontext.At(raw), src: string(raw), limits: l}
	return r.value(0)
}

type reader struct {
	in     jsontext.Cursor
	src    string
	limits limits
	nodes  int
}

// value parses a value, recursively up to the limit of nesting.
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
	case depth == r.limits.schema.nesting || r.nodes > r.limits.schema.values:
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

// children parses the members or items of an object or list.
func (r *reader) children(n *node, open byte, depth int) {
	r.in.Skip(open)
	for r.in.More(open + 2) { // in ASCII, ] is two after [, and } two after {
		name := ""
		if open == '{' {
			name = unquote(r.scalar())
		}
		value := r.value(depth + 1)
		switch {
		case r.nodes > r.limits.schema.values:
		case open == '{':
			n.set(name, value)
		default:
			n.items = append(n.items, value)
		}
	}
}

// scalar returns the source of a value that is not a list or object.
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

// Detail is the level of detail of declarations. Each level omits one more thing, for all
// tools.
type Detail int

const (
	// Full omits nothing.
	Full Detail = iota
	// WithoutConstraints omits constraints beyond types.
	WithoutConstraints
	// WithoutMembers omits the descriptions of members.
	WithoutMembers
	// WithoutResults omits the types of results.
	WithoutResults
	// FirstSentences omits all but the first sentences of descriptions.
	FirstSentences
	// WithoutArguments omits the types of arguments.
	WithoutArguments
	// NamesOnly omits all but names.
	NamesOnly
)

// omissions names what each level between [Full] and [NamesOnly] omits.
var omissions = [...]string{
	WithoutConstraints: "the constraints of values",
	WithoutMembers:     "the descriptions of members",
	WithoutResults:     "the types of results",
	FirstSentences:     "all but the first sentences of descriptions",
	WithoutArguments:   "the types of arguments",
}

// Omissions returns what declarations at this level omit, in the order of the levels; nil for
// [Full].
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
	// operator is the outermost operator in text: '|', '&', or 0.
	operator byte
}

var (
	unknown = shape{text: "unknown"}
	never   = shape{text: "never"}
	isNull  = shape{text: "null"}
	// anyObject is an object with unknown members.
	anyObject = shape{text: "{ [name: string]: unknown }"}
)

// operand returns the text of the type as an operand of an operator.
func (s shape) operand(operator byte) string {
	if s.operator == 0 || s.operator == operator || s.operator == '&' && operator == '|' {
		return s.text
	}
	return "(" + s.text + ")"
}

// union returns the union of types.
func union(shapes ...shape) shape { return joinTypes('|', unknown, never, shapes) }

// intersection returns the intersection of types.
func intersection(shapes ...shape) shape { return joinTypes('&', never, unknown, shapes) }

// joinTypes joins types with an operator. A type equal to zero is the whole result; types equal
// to one, and duplicates, are dropped.
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
