package schema

import (
	"encoding/json"
	"fmt"
	"slices"
)

// decodePlan holds what decoding needs from a subschema. A nil plan is empty. Plans may be
// cyclic; they are immutable after compilation.
type decodePlan struct {
	// integer means that a number is an integer, which must be exact. big means that it may
	// have any size. number means that the schema allows fractions.
	integer, big, number bool
	members              map[string]*plannedMember
	// defaults are the members with a default, by name.
	defaults []*plannedMember
	// rest is the plan of undeclared members.
	rest   *decodePlan
	prefix []*decodePlan
	items  *decodePlan
}

// plannedMember is a declared member of an object.
type plannedMember struct {
	name string
	plan *decodePlan
	// schema is nil after compilation.
	schema *subschema
	// fallback is the JSON text of the default, with nested defaults filled in, or nil.
	fallback json.RawMessage
	// scalar is the default if it is not an array or object.
	scalar any
	// text is the default as a member of an object.
	text []byte
}

// item returns the plan of array item i.
func (p *decodePlan) item(i int) *decodePlan {
	switch {
	case p == nil:
		return nil
	case i < len(p.prefix):
		return p.prefix[i]
	}
	return p.items
}

// value returns the default. Arrays and objects are new copies, so that calls do not share
// them.
func (m *plannedMember) value() any {
	if m.scalar != nil || string(m.fallback) == "null" {
		return m.scalar
	}
	d := decoder{data: m.fallback, lenient: true}
	v, _ := d.value(m.plan)
	return v
}

// planFor returns the plan of a subschema. It includes its references, its allOf, and the only
// alternative other than null. If several declare the same member, the first one wins.
func (c *compiler) planFor(sub *subschema) *decodePlan {
	if sub == nil {
		return nil
	}
	if sub.plan != nil {
		return sub.plan
	}
	p := &decodePlan{}
	sub.plan = p
	members := map[string]*plannedMember{}
	for _, same := range sub.unconditional() {
		p.integer, p.number = p.integer || same.integer(), p.number || typesOf(same.keys["type"])&numberType != 0
		for _, s := range same.children["properties"] {
			if members[s.name] == nil {
				members[s.name] = &plannedMember{name: s.name, schema: s.schema, plan: c.planFor(s.schema), fallback: s.schema.fallback()}
			}
		}
		if p.rest == nil {
			p.rest = c.planFor(same.single("additionalProperties"))
		}
		prefix, items := same.items()
		if p.prefix == nil {
			for _, s := range prefix {
				p.prefix = append(p.prefix, c.planFor(s.schema))
			}
		}
		if p.items == nil {
			p.items = c.planFor(items)
		}
	}
	if len(members) > 0 {
		p.members = members
	}
	for _, name := range sortedNames(members) {
		if m := members[name]; m.fallback != nil {
			p.defaults = append(p.defaults, m)
		}
	}
	return p
}

// unconditional returns the subschemas that always apply to a value that is not null.
func (sub *subschema) unconditional() []*subschema {
	seen := map[*subschema]bool{sub: true}
	list := []*subschema{sub}
	for i := 0; i < len(list); i++ {
		for _, inner := range list[i].unconditionalChildren() {
			if inner != nil && !seen[inner] {
				seen[inner] = true
				list = append(list, inner)
			}
		}
	}
	return list
}

func (sub *subschema) unconditionalChildren() []*subschema {
	list := []*subschema{sub.ref}
	for _, s := range sub.children["allOf"] {
		list = append(list, s.schema)
	}
	return append(list, nonNullAlternative(sub.children["anyOf"]), nonNullAlternative(sub.children["oneOf"]))
}

// nonNullAlternative returns the only alternative that is not null.
func nonNullAlternative(alternatives []child) *subschema {
	var other *subschema
	for _, s := range alternatives {
		switch {
		case s.schema.keys["type"] == "null":
		case other != nil:
			return nil
		default:
			other = s.schema
		}
	}
	return other
}

// integer reports whether the subschema requires an integer.
func (sub *subschema) integer() bool {
	t := typesOf(sub.keys["type"])
	return t&integerType != 0 && t&numberType == 0
}

// markBig marks the integers at a location as unbounded.
func (p *decodePlan) markBig(path []string) {
	switch {
	case p == nil:
	case len(path) == 0:
		p.big = true
	case p.members[path[0]] != nil:
		p.members[path[0]].plan.markBig(path[1:])
	case path[0] == "*":
		p.items.markBig(path[1:])
		p.rest.markBig(path[1:])
	}
}

// fallback returns the default of a subschema or of its references.
func (sub *subschema) fallback() json.RawMessage {
	for _, same := range sub.unconditional() {
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

// completeDefaults fills in nested defaults, validates defaults against their schemas, and
// prepares them for use.
func (c *compiler) completeDefaults() {
	comp := completion{compiler: c, state: map[*plannedMember]int{}, bytesLeft: maxDefaultBytes}
	for _, p := range c.order {
		if p.plan == nil {
			continue
		}
		for _, m := range slices.Clone(p.plan.defaults) {
			if !comp.complete(m) {
				return
			}
		}
		p.plan.defaults = slices.DeleteFunc(p.plan.defaults, func(m *plannedMember) bool { return m.text == nil })
	}
	for _, p := range c.order {
		if p.plan != nil {
			for _, m := range p.plan.members {
				m.schema = nil
			}
		}
	}
}

// completion tracks which defaults are complete.
type completion struct {
	compiler *compiler
	state    map[*plannedMember]int
	// bytesLeft is the remaining size for defaults.
	bytesLeft int
}

// complete completes the default of a member, after the defaults that it needs. It returns
// false if they are recursive.
func (c *completion) complete(m *plannedMember) bool {
	switch c.state[m] {
	case visited:
		return true
	case visiting:
		c.compiler.fail(m.schema.pointer, codeUnsafe, fmt.Sprintf("the default of %q contains itself", clip(m.name, maxNameBytes)),
			"remove one of the defaults, or give the inner one a value")
		return false
	}
	c.state[m] = visiting
	plain := decoder{data: m.fallback, lenient: true}
	value, _ := plain.document(m.plan)
	if !c.within(value, m.plan) {
		return false
	}
	full := decoder{data: m.fallback, fill: true, defaultBytesLeft: maxDefaultBytes, numbers: c.compiler.reader.Numbers}
	value, ok := full.document(m.plan)
	if !ok {
		return c.tooLong(m)
	}
	c.state[m] = visited
	if !c.compiler.fits(m, value) {
		return true
	}
	if len(full.rejected) > 0 {
		c.compiler.fail(m.schema.pointer+"/default", codeDefault, "the default does not fit its schema: it "+full.rejected[0].message, "correct the default or its schema")
		return true
	}
	m.fallback = splice(m.fallback, full.allPatches())
	if c.bytesLeft -= len(m.fallback); c.bytesLeft < 0 {
		return c.tooLong(m)
	}
	switch value.(type) {
	case []any, map[string]any:
	default:
		m.scalar = value
	}
	text, err := memberText(m.name, json.RawMessage(m.fallback))
	if err != nil {
		c.compiler.fail(m.schema.pointer, codeBad, "the default cannot be written as JSON", "write a JSON value")
		return true
	}
	m.text = text
	return true
}

func (c *completion) tooLong(m *plannedMember) bool {
	c.compiler.fail(m.schema.pointer, codeUnsafe, fmt.Sprintf("the defaults are longer than %d bytes with nested defaults", maxSchemaBytes),
		"remove some of them")
	return false
}

// within completes the defaults of missing members of a value.
func (c *completion) within(value any, p *decodePlan) bool {
	if p == nil {
		return true
	}
	switch value := value.(type) {
	case []any:
		for i, v := range value {
			if !c.within(v, p.item(i)) {
				return false
			}
		}
	case map[string]any:
		for _, name := range sortedNames(value) {
			inner := p.rest
			if m := p.members[name]; m != nil {
				inner = m.plan
			}
			if !c.within(value[name], inner) {
				return false
			}
		}
		for _, m := range p.defaults {
			if _, there := value[m.name]; !there && !c.complete(m) {
				return false
			}
		}
	}
	return true
}

// fits reports a default that violates its own schema. Some generators write null for "no
// default": that is only a warning.
func (c *compiler) fits(m *plannedMember, value any) bool {
	found := (&Schema{node: c.build(m.schema)}).mismatches(value, len(m.fallback), false)
	if len(found) == 0 {
		return true
	}
	at := m.schema.pointer + "/default"
	if value == nil {
		c.warn(at, codeDefault, fmt.Sprintf("the default null does not fit the schema of %q and has no effect", clip(m.name, maxNameBytes)),
			`remove it, or add "null" to the type`)
		return false
	}
	what := "it"
	if found[0].path != "" {
		what = found[0].path
	}
	c.fail(at, codeDefault, "the default does not fit its schema: "+what+" "+found[0].message, "correct the default or its schema")
	return false
}
