package toolprompt

import (
	"strings"
)

const (
	// maxLiterals is how many values of an enum are shown.
	maxLiterals = 64
	// maxLiteral bounds the bytes of a text that is shown as a type.
	maxLiteral = 256
)

// plain prints what a schema says by itself, without those that it refers to.
func (p *printer) plain(n *node, at spot) shape {
	if value := n.member("const"); value != nil {
		return p.literal(value, at)
	}
	if values := n.of(listKind, "enum"); values != nil {
		return p.enum(values, at)
	}
	var shapes []shape
	for _, name := range typesOf(n) {
		shapes = append(shapes, p.primitive(n, name, at))
	}
	if len(shapes) == 0 {
		return unknown
	}
	return unite(shapes...)
}

// typesOf returns the names of the types that a schema allows, none if it does not say.
func typesOf(n *node) []string {
	if t := n.member("type"); t != nil {
		switch {
		case t.kind == textKind:
			return []string{t.text}
		case t.kind == listKind:
			var names []string
			for i := range t.items[:min(len(t.items), maxAlternatives)] {
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

// primitive prints the values of one type that a schema allows.
func (p *printer) primitive(n *node, name string, at spot) shape {
	switch name {
	case "string", "boolean", "null", "number":
		return shape{text: name}
	case "integer":
		return shape{text: "number"}
	case "bigint":
		return unite(shape{text: "number"}, shape{text: "bigint"})
	case "object":
		return p.object(n, at)
	case "array":
		return p.array(n, at)
	}
	return unknown
}

// enum prints the first values of an enum, and the types of the others.
func (p *printer) enum(values *node, at spot) shape {
	var shapes []shape
	var further [kinds]bool
	for i := range values.items {
		v := &values.items[i]
		if i < maxLiterals && p.left > 0 {
			shapes = append(shapes, p.literal(v, at.deeper()))
		} else if !further[v.kind] {
			further[v.kind] = true
			shapes = append(shapes, kindOf(v))
		}
	}
	return unite(shapes...)
}

// kindOf returns the type of a value, and none of what is in it.
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

// literal prints a value as the type that has no other.
func (p *printer) literal(v *node, at spot) shape {
	p.left -= min(len(v.raw), maxLiteral)
	if at.depth > maxDepth || p.left < 0 {
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
		if len(v.items) <= maxAlternatives {
			return shape{text: "[" + strings.Join(p.literals(v, at), ", ") + "]"}
		}
	case objectKind:
		if len(v.items) <= maxAlternatives {
			return p.record(v, at)
		}
	}
	return kindOf(v)
}

func (p *printer) literals(v *node, at spot) []string {
	texts := make([]string, len(v.items))
	for i := range v.items {
		texts[i] = p.literal(&v.items[i], at.deeper()).text
	}
	return texts
}

// record prints the one object that has the members of v.
func (p *printer) record(v *node, at spot) shape {
	members := p.literals(v, at)
	for i, name := range v.names {
		if len(name) > maxName {
			return anyObject
		}
		members[i] = key(name) + ": " + members[i]
	}
	if len(members) == 0 {
		return shape{text: "{}"}
	}
	return shape{text: "{ " + strings.Join(members, "; ") + " }"}
}

// array prints the lists that a schema allows.
func (p *printer) array(n *node, at spot) shape {
	first, rest := n.of(listKind, "prefixItems"), n.member("items")
	if first == nil && rest != nil && rest.kind == listKind {
		first, rest = rest, n.member("additionalItems")
	}
	if first != nil && len(first.items) > 0 && len(first.items) <= maxAlternatives {
		return p.tuple(n, first, rest, at)
	}
	item := unknown
	if rest != nil {
		item = p.print(rest, at.inside().onLine(at))
	}
	return shape{text: listOf(item)}
}

// onLine returns the spot with the indent of another: what is there begins on the
// other's line.
func (s spot) onLine(other spot) spot {
	s.indent = other.indent
	return s
}

// tuple prints lists whose first items have types of their own.
func (p *printer) tuple(n, first, rest *node, at spot) shape {
	least := len(first.items)
	if count, ok := n.count("minItems"); ok {
		least = count
	}
	var items []string
	for i := range first.items {
		item := p.print(&first.items[i], at.inside().onLine(at))
		if i < least {
			items = append(items, item.text)
		} else {
			items = append(items, item.within('[')+"?")
		}
	}
	most, bounded := n.count("maxItems")
	if (rest == nil || rest.kind != falseKind) && (!bounded || most > len(items)) {
		further := unknown
		if rest != nil {
			further = p.print(rest, at.inside().onLine(at))
		}
		items = append(items, "..."+listOf(further))
	}
	return shape{text: "[" + strings.Join(items, ", ") + "]"}
}
