package toolprompt

import (
	"fmt"
	"strings"
)

const (
	// maxMembers is how many members of an object are shown.
	maxMembers = 200
	// maxFlat is the most bytes of an object that is printed on one line.
	maxFlat = 80
)

// object prints the objects that a schema allows.
func (p *printer) object(n *node, at spot) shape {
	properties := n.of(objectKind, "properties")
	if properties == nil {
		properties = &node{kind: objectKind}
	}
	members := p.members(n, properties, at.inside())
	others, named := p.others(n, at.inside()), len(members) > 0
	switch {
	case named && others == unknown:
		return shape{text: braces(members, at.indent)}
	case named:
		return intersect(shape{text: braces(members, at.indent)}, values(others))
	case others == never || n.of(objectKind, "properties") != nil && others == unknown:
		return shape{text: "{}"}
	}
	return values(others)
}

// values returns the type of objects whose members are all of a type.
func values(of shape) shape {
	if of == never {
		return unknown
	}
	return shape{text: "{ [name: string]: " + of.text + " }"}
}

// others prints the members of an object that the schema does not name.
func (p *printer) others(n *node, at spot) shape {
	var shapes []shape
	if patterns := n.of(objectKind, "patternProperties"); patterns != nil {
		shapes = p.each(patterns, at)
	}
	additional := n.member("additionalProperties")
	switch {
	case additional != nil:
		shapes = append(shapes, p.print(additional, at))
	case len(shapes) == 0:
		return unknown
	}
	return unite(shapes...)
}

// members prints the members that a schema names, in its order, and behind them those
// that it only requires.
func (p *printer) members(n, properties *node, at spot) []string {
	required := map[string]bool{}
	var printed []string
	left := 0
	all := n.of(listKind, "required")
	if all == nil {
		all = &node{}
	}
	for i := range all.items {
		required[all.items[i].text] = all.items[i].kind == textKind
	}
	for i, name := range properties.names {
		if !p.fits(name, len(printed)) {
			left++
			continue
		}
		printed = append(printed, p.member(name, &properties.items[i], required[name], at))
	}
	for i := range all.items {
		if name := all.items[i].text; required[name] && properties.member(name) == nil {
			required[name] = false
			if !p.fits(name, len(printed)) {
				left++
				continue
			}
			p.left -= len(name)
			printed = append(printed, key(name)+": unknown;")
		}
	}
	if left > 0 {
		printed = append(printed, fmt.Sprintf("/* %d more */", left))
	}
	return printed
}

// fits reports whether a member of a name is shown behind so many others.
func (p *printer) fits(name string, others int) bool {
	return len(name) <= maxName && others < maxMembers && p.left > 0
}

// member prints one member: what is told of it, its name and its type.
func (p *printer) member(name string, schema *node, required bool, at spot) string {
	told := comment(p.told(schema), indents(at.indent))
	if told != "" {
		told += indents(at.indent)
	}
	mark := "?: "
	if required {
		mark = ": "
	}
	p.left -= len(told) + len(name) + len(mark)
	return told + key(name) + mark + p.print(schema, at).text + ";"
}

func indents(n int) string { return strings.Repeat("  ", n) }

// braces returns members as an object, on one line where that is short.
func braces(members []string, indent int) string {
	flat := "{ " + strings.TrimSuffix(strings.Join(members, " "), ";") + " }"
	if len(flat) <= maxFlat && !strings.Contains(flat, "\n") {
		return flat
	}
	separator := "\n" + indents(indent+1)
	return "{" + separator + strings.Join(members, separator) + "\n" + indents(indent) + "}"
}
