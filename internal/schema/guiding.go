package schema

import "encoding/json"

// guideTo returns the guide of a part, together with what it refers to and
// its allOf, and the one alternative that stands beside null where a value may
// be null. Where two of them speak of the same member, the first one counts.
func (d *document) guideTo(p *part) *guide {
	if p == nil {
		return nil
	}
	if p.guide != nil {
		return p.guide
	}
	g := &guide{}
	p.guide = g
	members := map[string]*guidedMember{}
	for _, same := range p.together() {
		g.integer, g.number = g.integer || same.integer(), g.number || typesOf(same.keys["type"])&numberType != 0
		for _, s := range same.subs["properties"] {
			if members[s.name] == nil {
				members[s.name] = &guidedMember{name: s.name, part: s.part, guide: d.guideTo(s.part), fallback: s.part.fallback()}
			}
		}
		if g.rest == nil {
			g.rest = d.guideTo(same.only("additionalProperties"))
		}
		prefix, items := same.items()
		if g.prefix == nil {
			for _, s := range prefix {
				g.prefix = append(g.prefix, d.guideTo(s.part))
			}
		}
		if g.items == nil {
			g.items = d.guideTo(items)
		}
	}
	if len(members) > 0 {
		g.members = members
	}
	for _, name := range sortedNames(members) {
		if m := members[name]; m.fallback != nil {
			g.fills = append(g.fills, m)
		}
	}
	return g
}

// together returns the parts that surely apply to a value that is not null.
func (p *part) together() []*part {
	seen := map[*part]bool{p: true}
	list := []*part{p}
	for i := 0; i < len(list); i++ {
		for _, inner := range list[i].surely() {
			if inner != nil && !seen[inner] {
				seen[inner] = true
				list = append(list, inner)
			}
		}
	}
	return list
}

func (p *part) surely() []*part {
	list := []*part{p.ref}
	for _, s := range p.subs["allOf"] {
		list = append(list, s.part)
	}
	return append(list, besideNull(p.subs["anyOf"]), besideNull(p.subs["oneOf"]))
}

// besideNull returns the one alternative that is not null.
func besideNull(alternatives []sub) *part {
	var other *part
	for _, s := range alternatives {
		switch {
		case s.part.keys["type"] == "null":
		case other != nil:
			return nil
		default:
			other = s.part
		}
	}
	return other
}

// integer reports whether the part says that a number is an integer.
func (p *part) integer() bool {
	t := typesOf(p.keys["type"])
	return t&integerType != 0 && t&numberType == 0
}

// markBig says that integers at a place may have any size.
func (g *guide) markBig(place []string) {
	switch {
	case g == nil:
	case len(place) == 0:
		g.big = true
	case g.members[place[0]] != nil:
		g.members[place[0]].guide.markBig(place[1:])
	case place[0] == "*":
		g.items.markBig(place[1:])
		g.rest.markBig(place[1:])
	}
}

// fallback returns the default of a part, or of what it refers to.
func (p *part) fallback() json.RawMessage {
	for _, same := range p.together() {
		value, ok := same.keys["default"]
		if !ok {
			continue
		}
		if text, err := appendJSON(nil, value); err == nil {
			return text
		}
	}
	return nil
}
