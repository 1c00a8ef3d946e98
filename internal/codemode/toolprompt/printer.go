package toolprompt

import (
	"strconv"
	"strings"
)

// limits bound a schema and its declaration. Everything beyond is unknown.
type limits struct {
	// schema bounds the schema in bytes, values and nested lists and objects.
	schema struct{ bytes, values, nesting int }
	// declaration bounds the printed types in bytes, approximately, and comments their comments.
	declaration, comments int
	depth                 int // nested types
	types                 int // named types
	alternatives          int // types of a union or an intersection
	members               int // shown members of an object
	name                  int // bytes of the name of a shown member
	literals              int // shown values of an enum
	steps                 int // visited schemas in the check for circular types
}

// promptLimits are the limits of declarations in prompts, which every run of an agent pays for.
func promptLimits() limits {
	l := limits{declaration: maxDeclaration, comments: maxDeclaration, depth: maxDepth, types: 64, alternatives: 32, members: 200, name: maxName, literals: maxLiterals, steps: 10_000}
	l.schema.bytes, l.schema.values, l.schema.nesting = maxSchema, 20_000, maxNesting
	return l
}

// fileLimits are the limits of [Types]. They permit every schema that package schema compiles, and
// bound only the comments like in a prompt: a type without a member rejects correct scripts.
func fileLimits() limits {
	const all = 1 << 20
	l := limits{declaration: 16 << 20, comments: maxDeclaration, depth: 256, types: all, alternatives: all, members: all, name: all, literals: all, steps: all}
	l.schema.bytes, l.schema.values, l.schema.nesting = all, all, 256
	return l
}

const (
	maxDeclaration = 32 << 10
	maxDepth       = 12
)

// typeNames are the type names in use, for a list of tools.
type typeNames map[string]int

func (t typeNames) unique(name string) string {
	for {
		t[name]++
		n := t[name]
		if n == 1 {
			return name
		}
		name += strconv.Itoa(n)
	}
}

type printer struct {
	detail Detail
	// filled is set if members with a default are present.
	filled bool
	names  typeNames
	prefix string
	limits limits
	// remaining is the number of bytes that may still be printed, comments the part of it for
	// comments, and steps the remaining steps of circular.
	remaining, comments, steps int
	// doc is the schema being printed, and current its named type.
	doc     *document
	current *node
	named   map[*node]string
	// queue are the named types; the first defined ones are in types.
	queue   []namedType
	defined int
	types   strings.Builder
}

// namedType is a schema that is printed as a named type.
type namedType struct {
	name string
	at   *node
}

func newPrinter(tool string, detail Detail, names typeNames, l limits) *printer {
	prefix := pascalCase(tool)
	if prefix == "" || prefix[0] <= '9' {
		prefix = "Tool" + prefix
	}
	return &printer{detail: detail, names: names, prefix: prefix, limits: l, remaining: l.declaration, comments: l.comments, steps: l.steps, named: map[*node]string{}}
}

// position is the position of a type: its depth, its indentation, and whether an object or list
// is between it and the named type that it defines.
type position struct {
	depth, indent int
	guarded       bool
}

// inside returns the position inside an object or list.
func (p position) inside() position {
	return position{depth: p.depth + 1, indent: p.indent + 1, guarded: true}
}

func (p position) deeper() position {
	p.depth++
	return p
}

// root prints a schema as a type. A recursive schema is a named type.
func (p *printer) root(raw []byte, indent int) (string, *document) {
	doc := newDocument(raw, p.limits)
	p.doc, p.current = doc, &doc.root
	printed := p.print(&doc.root, position{indent: indent})
	for ; p.defined < len(p.queue); p.defined++ {
		t := p.queue[p.defined]
		p.current = t.at
		p.types.WriteString(p.comment(t.at, ""))
		p.types.WriteString("type " + t.name + " = " + p.print(t.at, position{}).text + ";\n")
	}
	if name, named := p.named[&doc.root]; named {
		return name, doc
	}
	return printed.text, doc
}

func (p *printer) print(n *node, at position) shape {
	p.remaining -= len("type")
	switch {
	case n.kind == falseKind:
		return never
	case n.kind != objectKind || at.depth > p.limits.depth || p.remaining < 0:
		return unknown
	}
	var parts []shape
	if ref, ok := reference(n); ok {
		parts = append(parts, p.typeName(ref, at))
	}
	parts = append(parts, p.ownType(n, at))
	if all := n.memberOfKind(listKind, "allOf"); all != nil {
		parts = append(parts, p.each(all, at)...)
	}
	for _, keyword := range alternatives {
		if choices := n.memberOfKind(listKind, keyword); choices != nil && len(choices.items) > 0 {
			parts = append(parts, union(p.each(choices, at)...))
		}
	}
	printed := intersection(parts...)
	if n.isTrue("nullable") {
		printed = union(printed, isNull)
	}
	return printed
}

// each prints the schemas of a list, up to the limit; the rest is unknown.
func (p *printer) each(choices *node, at position) []shape {
	var shapes []shape
	for i := range choices.items {
		if i == p.limits.alternatives {
			return append(shapes, unknown)
		}
		shapes = append(shapes, p.print(&choices.items[i], at.deeper()))
	}
	return shapes
}

// typeName returns the name of the type of a reference.
func (p *printer) typeName(ref string, at position) shape {
	target := p.doc.resolve(ref)
	if target == nil || target.kind != objectKind || !at.guarded && p.doc.circular(target, p.current, &p.steps) {
		return unknown
	}
	name, named := p.named[target]
	if !named {
		if len(p.queue) == p.limits.types || p.remaining < 0 {
			return unknown
		}
		name = p.names.unique(p.prefix + pascalCase(p.typeNoun(ref, target)))
		p.named[target] = name
		p.queue = append(p.queue, namedType{name, target})
	}
	p.remaining -= len(name)
	return shape{text: name}
}

// typeNoun returns a noun for the type of a reference.
func (p *printer) typeNoun(ref string, target *node) string {
	if target == &p.doc.root {
		if title := target.stringMember("title"); pascalCase(title) != "" {
			return title
		}
		return "root"
	}
	noun := ref[strings.LastIndexAny(ref, "/#")+1:]
	if pascalCase(noun) == "" {
		return "type"
	}
	return noun
}
