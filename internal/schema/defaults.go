package schema

import (
	"encoding/json"
	"fmt"
	"slices"
)

// completeDefaults fills in the defaults within defaults, checks that they fit
// their schemas, and makes them ready for use.
func (d *document) completeDefaults() {
	c := completion{document: d, state: map[*guidedMember]int{}, room: roomForDefaults}
	for _, p := range d.listed {
		if p.guide == nil {
			continue
		}
		for _, m := range slices.Clone(p.guide.fills) {
			if !c.complete(m) {
				return
			}
		}
		p.guide.fills = slices.DeleteFunc(p.guide.fills, func(m *guidedMember) bool { return m.text == nil })
	}
	for _, p := range d.listed {
		if p.guide != nil {
			for _, m := range p.guide.members {
				m.part = nil
			}
		}
	}
}

// A completion knows which defaults are ready.
type completion struct {
	document *document
	state    map[*guidedMember]int
	// room is how many bytes of defaults are left.
	room int
}

// complete makes the default of a member ready, after those that it needs
// itself. It reports false when that would never end.
func (c *completion) complete(m *guidedMember) bool {
	switch c.state[m] {
	case visited:
		return true
	case visiting:
		c.document.fail(m.part.at, codeUnsafe, fmt.Sprintf("the default of %q holds itself without end", clip(m.name, longestName)),
			"leave out one of the defaults, or give the inner one a value")
		return false
	}
	c.state[m] = visiting
	plain := decoder{data: m.fallback, lenient: true}
	value, _ := plain.document(m.guide)
	if !c.within(value, m.guide) {
		return false
	}
	full := decoder{data: m.fallback, fill: true, room: roomForDefaults, numbers: c.document.reader.Numbers}
	value, ok := full.document(m.guide)
	if !ok {
		return c.refuse(m)
	}
	c.state[m] = visited
	if !c.document.fits(m, value) {
		return true
	}
	if len(full.refused) > 0 {
		c.document.fail(m.part.at+"/default", codeDefault, "the default does not fit its schema: it "+full.refused[0].message, "correct the default or its schema")
		return true
	}
	m.fallback = splice(m.fallback, full.allPatches())
	if c.room -= len(m.fallback); c.room < 0 {
		return c.refuse(m)
	}
	switch value.(type) {
	case []any, map[string]any:
	default:
		m.scalar = value
	}
	text, err := appendMember(nil, m.name, json.RawMessage(m.fallback))
	if err != nil {
		c.document.fail(m.part.at, codeBad, "the default cannot be written as JSON", "write a JSON value")
		return true
	}
	m.text = text
	return true
}

func (c *completion) refuse(m *guidedMember) bool {
	c.document.fail(m.part.at, codeUnsafe, fmt.Sprintf("the defaults are longer than %d bytes with the defaults inside them", largestSchema),
		"leave out some of them")
	return false
}

// within completes the defaults of what a value lacks.
func (c *completion) within(value any, g *guide) bool {
	if g == nil {
		return true
	}
	switch value := value.(type) {
	case []any:
		for i, v := range value {
			if !c.within(v, g.item(i)) {
				return false
			}
		}
	case map[string]any:
		for _, name := range sortedNames(value) {
			inner := g.rest
			if m := g.members[name]; m != nil {
				inner = m.guide
			}
			if !c.within(value[name], inner) {
				return false
			}
		}
		for _, m := range g.fills {
			if _, there := value[m.name]; !there && !c.complete(m) {
				return false
			}
		}
	}
	return true
}

// fits reports a default that is wrong by its own schema. Some generators
// write the default null for "no default": that one is passed over.
func (d *document) fits(m *guidedMember, value any) bool {
	if d.contextual != "" {
		return true
	}
	found := (&Schema{node: d.build(m.part)}).faults(value, len(m.fallback), false)
	if len(found) == 0 {
		return true
	}
	at := m.part.at + "/default"
	if value == nil {
		d.warn(at, codeDefault, fmt.Sprintf("the default null does not fit the schema of %q and has no effect", clip(m.name, longestName)),
			`remove it, or add "null" to the type`)
		return false
	}
	what := "it"
	if found[0].path != "" {
		what = found[0].path
	}
	d.fail(at, codeDefault, "the default does not fit its schema: "+what+" "+found[0].message, "correct the default or its schema")
	return false
}
