package toolprompt

import (
	"strconv"
	"strings"
)

// The bounds of a declaration. What is beyond them is unknown.
const (
	maxDeclaration  = 32 << 10 // bytes, about
	maxDepth        = 12       // types in each other
	maxTypes        = 64       // types with names
	maxAlternatives = 32       // types of a union or an intersection
	maxSteps        = 10_000   // schemas looked at to see which types go in circles
)

// typeNames are the names of types that a list of tools has taken.
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
	names  typeNames
	prefix string
	// left is how many bytes may be printed yet, and steps are those of circular.
	remaining, steps int
	// doc is the schema that is being printed, and within the named type of it.
	doc     *document
	current *node
	named   map[*node]string
	// queue are the types with names, of which the first are defined in types.
	queue   []namedType
	defined int
	types   strings.Builder
}

// namedType is a schema that is printed as a type with a name.
type namedType struct {
	name string
	at   *node
}

func newPrinter(tool string, detail Detail, names typeNames) *printer {
	prefix := pascalCase(tool)
	if prefix == "" || prefix[0] <= '9' {
		prefix = "Tool" + prefix
	}
	return &printer{detail: detail, names: names, prefix: prefix, remaining: maxDeclaration, steps: maxSteps, named: map[*node]string{}}
}

// spot is where a type stands: how deep, in how many indents, and whether an
// object, a list or nothing is between it and the type whose name it defines.
type position struct {
	depth, indent int
	guarded       bool
}

// inside returns the spot of what is in an object or a list at this one.
func (s position) inside() position {
	return position{depth: s.depth + 1, indent: s.indent + 1, guarded: true}
}

func (s position) deeper() position {
	s.depth++
	return s
}

// root prints a whole schema as a type. Where it refers to itself, that is one with
// a name.
func (p *printer) root(raw []byte, indent int) (string, *document) {
	doc := newDocument(raw)
	p.doc, p.current = doc, &doc.root
	printed := p.print(&doc.root, position{indent: indent})
	for ; p.defined < len(p.queue); p.defined++ {
		t := p.queue[p.defined]
		p.current = t.at
		p.types.WriteString(comment(p.docLines(t.at), ""))
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
	case n.kind != objectKind || at.depth > maxDepth || p.remaining < 0:
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

// each prints the schemas of a list. What is behind the first of very many is unknown.
func (p *printer) each(choices *node, at position) []shape {
	var shapes []shape
	for i := range choices.items {
		if i == maxAlternatives {
			return append(shapes, unknown)
		}
		shapes = append(shapes, p.print(&choices.items[i], at.deeper()))
	}
	return shapes
}

// refer returns the name of the type that a reference is to.
func (p *printer) typeName(ref string, at position) shape {
	target := p.doc.resolve(ref)
	if target == nil || target.kind != objectKind || !at.guarded && p.doc.circular(target, p.current, &p.steps) {
		return unknown
	}
	name, named := p.named[target]
	if !named {
		if len(p.queue) == maxTypes || p.remaining < 0 {
			return unknown
		}
		name = p.names.unique(p.prefix + pascalCase(p.typeNoun(ref, target)))
		p.named[target] = name
		p.queue = append(p.queue, namedType{name, target})
	}
	p.remaining -= len(name)
	return shape{text: name}
}

// noun returns what a type is called by which a reference names it.
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
