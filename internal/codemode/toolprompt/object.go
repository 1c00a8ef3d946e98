package toolprompt

import (
	"fmt"
	"strings"
)

// maxFlat bounds an object on one line, in bytes.
const maxFlat = 80

func (p *printer) object(n *node, at position) shape {
	properties := n.memberOfKind(objectKind, "properties")
	if properties == nil {
		properties = &node{kind: objectKind}
	}
	members := p.members(n, properties, at.inside())
	others, named := p.additional(n, at.inside()), len(members) > 0
	switch {
	case named && others == unknown:
		return shape{text: braces(members, at.indent)}
	case named:
		return intersection(shape{text: braces(members, at.indent)}, mapOf(others))
	case others == never || n.memberOfKind(objectKind, "properties") != nil && others == unknown:
		return shape{text: "{}"}
	}
	return mapOf(others)
}

// mapOf returns the type of objects with members of one type.
func mapOf(of shape) shape {
	if of == never {
		return unknown
	}
	return shape{text: "{ [name: string]: " + of.text + " }"}
}

// additional prints the type of members that the schema does not name.
func (p *printer) additional(n *node, at position) shape {
	var shapes []shape
	if patterns := n.memberOfKind(objectKind, "patternProperties"); patterns != nil {
		shapes = p.each(patterns, at)
	}
	additional := n.member("additionalProperties")
	switch {
	case additional != nil:
		shapes = append(shapes, p.print(additional, at))
	case len(shapes) == 0:
		return unknown
	}
	return union(shapes...)
}

// members prints the members that a schema names, in its order, and then those that are only
// required.
func (p *printer) members(n, properties *node, at position) []string {
	required := map[string]bool{}
	var printed []string
	left := 0
	all := n.memberOfKind(listKind, "required")
	if all == nil {
		all = &node{}
	}
	for i := range all.items {
		required[all.items[i].text] = all.items[i].kind == textKind
	}
	for i, name := range properties.names {
		if !p.isShown(name, len(printed)) {
			left++
			continue
		}
		printed = append(printed, p.member(name, &properties.items[i], required[name] || p.filled && properties.items[i].member("default") != nil, at))
	}
	for i := range all.items {
		if name := all.items[i].text; required[name] && properties.member(name) == nil {
			required[name] = false
			if !p.isShown(name, len(printed)) {
				left++
				continue
			}
			p.remaining -= len(name)
			printed = append(printed, propertyKey(name)+": unknown;")
		}
	}
	if left > 0 {
		printed = append(printed, fmt.Sprintf("/* %d more */", left))
	}
	return printed
}

// isShown reports whether another member is shown.
func (p *printer) isShown(name string, others int) bool {
	return len(name) <= p.limits.name && others < p.limits.members && p.remaining > 0
}

// member prints one member: its comment, name and type.
func (p *printer) member(name string, schema *node, required bool, at position) string {
	doc := p.comment(schema, indentation(at.indent))
	if doc != "" {
		doc += indentation(at.indent)
	}
	mark := "?: "
	if required {
		mark = ": "
	}
	p.remaining -= len(doc) + len(name) + len(mark)
	return doc + propertyKey(name) + mark + p.print(schema, at).text + ";"
}

func indentation(n int) string { return strings.Repeat("  ", n) }

// braces returns members as an object type, on one line if it is short.
func braces(members []string, indent int) string {
	flat := "{ " + strings.TrimSuffix(strings.Join(members, " "), ";") + " }"
	if len(flat) <= maxFlat && !strings.Contains(flat, "\n") {
		return flat
	}
	separator := "\n" + indentation(indent+1)
	return "{" + separator + strings.Join(members, separator) + "\n" + indentation(indent) + "}"
}

const (
	// maxLiterals bounds the shown values of an enum in a prompt.
	maxLiterals = 64
	// maxLiteral bounds a string shown as a literal type, in bytes.
	maxLiteral = 256
)

// ownType prints the type of a schema without its references.
func (p *printer) ownType(n *node, at position) shape {
	if value := n.member("const"); value != nil {
		return p.literal(value, at)
	}
	if values := n.memberOfKind(listKind, "enum"); values != nil {
		return p.enum(values, at)
	}
	var shapes []shape
	for _, name := range typesOf(n) {
		shapes = append(shapes, p.primitive(n, name, at))
	}
	if len(shapes) == 0 {
		return unknown
	}
	return union(shapes...)
}

// maxTypeNames bounds the types in the keyword type. There are fewer names of types.
const maxTypeNames = 32

// typesOf returns the types that a schema allows, or nil if it does not say.
func typesOf(n *node) []string {
	if t := n.member("type"); t != nil {
		switch {
		case t.kind == textKind:
			return []string{t.text}
		case t.kind == listKind:
			var names []string
			for i := range t.items[:min(len(t.items), maxTypeNames)] {
				names = append(names, t.items[i].text)
			}
			return names
		}
	}
	for _, keyword := range [...]string{"properties", "required", "additionalProperties", "patternProperties"} {
		if n.member(keyword) != nil {
			return []string{"object"}
		}
	}
	if n.member("items") != nil || n.member("prefixItems") != nil {
		return []string{"array"}
	}
	return nil
}

func (p *printer) primitive(n *node, name string, at position) shape {
	switch name {
	case "string", "boolean", "null", "number":
		return shape{text: name}
	case "integer":
		return shape{text: "number"}
	case "bigint":
		return union(shape{text: "number"}, shape{text: "bigint"})
	case "object":
		return p.object(n, at)
	case "array":
		return p.array(n, at)
	}
	return unknown
}

// enum prints the first values of an enum, and the types of the others.
func (p *printer) enum(values *node, at position) shape {
	var shapes []shape
	var further [kinds]bool
	for i := range values.items {
		v := &values.items[i]
		if i < p.limits.literals && p.remaining > 0 {
			shapes = append(shapes, p.literal(v, at.deeper()))
		} else if !further[v.kind] {
			further[v.kind] = true
			shapes = append(shapes, kindOf(v))
		}
	}
	return union(shapes...)
}

// kindOf returns the type of a value without its content.
func kindOf(v *node) shape {
	switch v.kind {
	case nullKind:
		return isNull
	case trueKind, falseKind:
		return shape{text: "boolean"}
	case numberKind:
		return shape{text: "number"}
	case textKind:
		return shape{text: "string"}
	case listKind:
		return shape{text: "unknown[]"}
	case objectKind:
		return anyObject
	}
	return unknown
}

// literal prints a value as a literal type.
func (p *printer) literal(v *node, at position) shape {
	p.remaining -= min(len(v.raw), maxLiteral)
	if at.depth > p.limits.depth || p.remaining < 0 {
		return kindOf(v)
	}
	switch v.kind {
	case nullKind, trueKind, falseKind:
		return shape{text: v.raw}
	case numberKind:
		if len(v.raw) <= maxNumber {
			return shape{text: v.raw}
		}
	case textKind:
		if len(v.text) <= maxLiteral {
			return shape{text: quote(v.text)}
		}
	case listKind:
		if len(v.items) <= p.limits.alternatives {
			return shape{text: "[" + strings.Join(p.literals(v, at), ", ") + "]"}
		}
	case objectKind:
		if len(v.items) <= p.limits.alternatives {
			return p.record(v, at)
		}
	}
	return kindOf(v)
}

func (p *printer) literals(v *node, at position) []string {
	texts := make([]string, len(v.items))
	for i := range v.items {
		texts[i] = p.literal(&v.items[i], at.deeper()).text
	}
	return texts
}

// record prints an object literal type.
func (p *printer) record(v *node, at position) shape {
	members := p.literals(v, at)
	for i, name := range v.names {
		if len(name) > p.limits.name {
			return anyObject
		}
		members[i] = propertyKey(name) + ": " + members[i]
	}
	if len(members) == 0 {
		return shape{text: "{}"}
	}
	return shape{text: "{ " + strings.Join(members, "; ") + " }"}
}

func (p *printer) array(n *node, at position) shape {
	first, rest := n.memberOfKind(listKind, "prefixItems"), n.member("items")
	if first == nil && rest != nil && rest.kind == listKind {
		first, rest = rest, n.member("additionalItems")
	}
	if first != nil && len(first.items) > 0 && len(first.items) <= p.limits.alternatives {
		return p.tuple(n, first, rest, at)
	}
	item := unknown
	if rest != nil {
		item = p.print(rest, at.inside().onLineOf(at))
	}
	return shape{text: arrayOf(item)}
}

// onLineOf returns the position with the indentation of another, for a type that starts on the
// same line.
func (p position) onLineOf(other position) position {
	p.indent = other.indent
	return p
}

// tuple prints a list type with separate types for its first items.
func (p *printer) tuple(n, first, rest *node, at position) shape {
	least := len(first.items)
	if count, ok := n.count("minItems"); ok {
		least = count
	}
	var items []string
	for i := range first.items {
		item := p.print(&first.items[i], at.inside().onLineOf(at))
		if i < least {
			items = append(items, item.text)
		} else {
			items = append(items, item.operand('[')+"?")
		}
	}
	most, bounded := n.count("maxItems")
	if (rest == nil || rest.kind != falseKind) && (!bounded || most > len(items)) {
		further := unknown
		if rest != nil {
			further = p.print(rest, at.inside().onLineOf(at))
		}
		items = append(items, "..."+arrayOf(further))
	}
	return shape{text: "[" + strings.Join(items, ", ") + "]"}
}
