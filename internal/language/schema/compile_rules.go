package schema

import "math"

// acceptsAll reports whether the subschema accepts every value.
func (p *subschema) acceptsAll() bool { return !p.never && len(p.keys) == 0 }

// excludesAll reports whether the subschema is equivalent to false.
func (p *subschema) excludesAll() bool {
	not := p.single("not")
	return not != nil && not.acceptsAll()
}

// build returns the rules of a subschema, or nil if there are none. Cycles are possible only
// through members and items; then the unfinished node is used.
func (d *compiler) build(p *subschema) *node {
	if p == nil || p.acceptsAll() {
		return nil
	}
	if p.node != nil {
		return p.node
	}
	n := &node{never: p.never || p.excludesAll() && !p.onlyRef()}
	p.node = n
	if p.onlyRef() {
		n.applicators = &applicators{all: []*node{d.build(p.ref)}}
		return n
	}
	n.types = typesOf(p.keys["type"])
	n.enum = enumOf(p.keys)
	n.number = numberOf(p.keys)
	n.resource, n.scoped = p.base, d.scoped
	n.str = d.stringOf(p.keys)
	n.array = d.arrayOf(p)
	n.object = d.objectOf(p)
	n.applicators = d.applicatorsOf(p)
	n.coverage = d.coverageOf(p)
	return n
}

func typesOf(value any) types {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	t := types(0)
	for _, v := range list {
		name, _ := v.(string)
		t |= typeNamed(name)
	}
	return t
}

// enumOf returns the values that enum and const allow.
func enumOf(keys map[string]any) *enumRule {
	only, fixed := keys["const"]
	list, listed := keys["enum"].([]any)
	switch {
	case fixed && listed:
		if !newEnumRule(list).has(only, &validation{stepsLeft: maxSteps}) {
			return newEnumRule(nil)
		}
		return newEnumRule([]any{only})
	case fixed:
		return newEnumRule([]any{only})
	case listed:
		return newEnumRule(list)
	}
	return nil
}

func numberOf(keys map[string]any) *numberRule {
	n := numberRule{
		min: keys["minimum"], max: keys["maximum"], step: keys["multipleOf"],
		above: keys["exclusiveMinimum"], below: keys["exclusiveMaximum"],
	}
	n.min, n.above = withFlag(n.min, n.above)
	n.max, n.below = withFlag(n.max, n.below)
	if n == (numberRule{}) {
		return nil
	}
	return &n
}

// withFlag returns an inclusive and an exclusive limit. In draft 4, the latter is a flag that
// makes the former exclusive.
func withFlag(limit, excluded any) (included, exclusive any) {
	switch excluded {
	case true:
		return nil, limit
	case false:
		return limit, nil
	}
	return limit, excluded
}

func (d *compiler) stringOf(keys map[string]any) *stringRule {
	t := stringRule{min: countOf(keys, "minLength", 0), max: countOf(keys, "maxLength", math.MaxInt)}
	if text, ok := keys["pattern"].(string); ok {
		t.pattern = d.patterns[text]
	}
	if name, ok := keys["format"].(string); ok {
		t.format = formats[name]
	}
	if t == (stringRule{max: math.MaxInt}) {
		return nil
	}
	return &t
}

// countOf returns the value of a keyword that is a count.
func countOf(keys map[string]any, keyword string, otherwise int) int {
	if i, ok := keys[keyword].(int64); ok {
		return int(min(i, math.MaxInt))
	}
	return otherwise
}

func (d *compiler) arrayOf(p *subschema) *arrayRule {
	l := arrayRule{
		min: countOf(p.keys, "minItems", 0), max: countOf(p.keys, "maxItems", math.MaxInt), unique: p.keys["uniqueItems"] == true,
	}
	prefix, items := p.items()
	for _, s := range prefix {
		l.prefix = append(l.prefix, d.build(s.schema))
	}
	l.items = d.build(items)
	if contains := p.single("contains"); contains != nil {
		l.contains = &containsRule{node: d.build(contains), min: 1, max: math.MaxInt}
		if p.dialect >= draft2019 {
			l.contains.min = countOf(p.keys, "minContains", 1)
			l.contains.max = countOf(p.keys, "maxContains", math.MaxInt)
		}
	}
	if l.min == 0 && l.max == math.MaxInt && !l.unique && l.prefix == nil && l.items == nil && l.contains == nil {
		return nil
	}
	return &l
}

// items returns the schemas of the first items, and the schema of the remaining items.
func (p *subschema) items() (prefix []child, rest *subschema) {
	if p.dialect >= draft2020 {
		return p.children["prefixItems"], p.single("items")
	}
	if _, tuple := p.keys["items"].([]any); tuple {
		return p.children["items"], p.single("additionalItems")
	}
	return nil, p.single("items")
}

func (d *compiler) objectOf(p *subschema) *objectRule {
	o := objectRule{
		min: countOf(p.keys, "minProperties", 0), max: countOf(p.keys, "maxProperties", math.MaxInt),
		required: namesOf(p.keys["required"]), rest: d.build(p.single("additionalProperties")), names: d.build(p.single("propertyNames")),
	}
	if list := p.children["properties"]; len(list) > 0 {
		o.members = make(map[string]*node, len(list))
		for _, s := range list {
			o.members[s.name] = d.build(s.schema)
			o.declared = append(o.declared, s.name)
			if n := o.members[s.name]; n != nil && n.enum != nil {
				o.discriminators = append(o.discriminators, s.name)
			}
		}
	}
	for _, s := range p.children["patternProperties"] {
		o.patterns = append(o.patterns, patternRule{d.patterns[s.name], d.build(s.schema)})
	}
	o.dependentRequired = dependentRequiredOf(p)
	if o.min == 0 && o.max == math.MaxInt && o.required == nil && o.rest == nil && o.names == nil &&
		o.members == nil && o.patterns == nil && o.dependentRequired == nil {
		return nil
	}
	return &o
}

func dependentRequiredOf(p *subschema) []dependentRequired {
	var needs []dependentRequired
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		if _, known := p.dialect.lookup(keyword); !known {
			continue
		}
		object, _ := p.keys[keyword].(map[string]any)
		for _, name := range sortedNames(object) {
			if list := namesOf(object[name]); list != nil {
				needs = append(needs, dependentRequired{name, list})
			}
		}
	}
	return needs
}

func namesOf(value any) []string {
	list, _ := value.([]any)
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func (d *compiler) applicatorsOf(p *subschema) *applicators {
	var f applicators
	if p.ref != nil {
		f.all = append(f.all, d.build(p.ref))
	}
	f.all = append(f.all, d.buildAll(p.children["allOf"])...)
	f.any, f.one = d.buildAll(p.children["anyOf"]), d.buildAll(p.children["oneOf"])
	f.not = d.build(p.single("not"))
	if test := p.single("if"); test != nil && (p.single("then") != nil || p.single("else") != nil || d.unevaluated) {
		f.when = &condition{d.build(test), d.build(p.single("then")), d.build(p.single("else"))}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		for _, s := range p.children[keyword] {
			f.dependent = append(f.dependent, dependent{s.name, d.build(s.schema)})
		}
	}
	f.dynamic = d.dynamicRefOf(p)
	if f.all == nil && f.any == nil && f.one == nil && f.not == nil && f.when == nil && f.dependent == nil && f.dynamic == nil {
		return nil
	}
	return &f
}

func (d *compiler) buildAll(subs []child) []*node {
	var list []*node
	for _, s := range subs {
		list = append(list, d.build(s.schema))
	}
	return list
}
