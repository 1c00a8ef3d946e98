package schema

import "math"

// acceptsAll reports whether the subschema accepts every value.
func (sub *subschema) acceptsAll() bool { return !sub.never && len(sub.keys) == 0 }

// excludesAll reports whether the subschema is equivalent to false.
func (sub *subschema) excludesAll() bool {
	not := sub.single("not")
	return not != nil && not.acceptsAll()
}

// build returns the rules of a subschema, or nil if there are none. Cycles are possible only
// through members and items; then the unfinished node is used.
func (c *compiler) build(sub *subschema) *node {
	if sub == nil || sub.acceptsAll() {
		return nil
	}
	if sub.node != nil {
		return sub.node
	}
	n := &node{never: sub.never || sub.excludesAll() && !sub.onlyRef()}
	sub.node = n
	if sub.onlyRef() {
		n.applicators = &applicators{all: []*node{c.build(sub.ref)}}
		return n
	}
	n.types = typesOf(sub.keys["type"])
	n.enum = enumOf(sub.keys)
	n.number = numberOf(sub.keys)
	n.resource, n.scoped = sub.base, c.scoped
	n.str = c.stringOf(sub.keys)
	n.array = c.arrayOf(sub)
	n.object = c.objectOf(sub)
	n.applicators = c.applicatorsOf(sub)
	n.coverage = c.coverageOf(sub)
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
		if !newEnumRule(list).has(only, &run{stepsLeft: maxSteps}) {
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

func (c *compiler) stringOf(keys map[string]any) *stringRule {
	t := stringRule{min: countOf(keys, "minLength", 0), max: countOf(keys, "maxLength", math.MaxInt)}
	if text, ok := keys["pattern"].(string); ok {
		t.pattern = c.patterns[text]
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

func (c *compiler) arrayOf(sub *subschema) *arrayRule {
	a := arrayRule{
		min: countOf(sub.keys, "minItems", 0), max: countOf(sub.keys, "maxItems", math.MaxInt), unique: sub.keys["uniqueItems"] == true,
	}
	prefix, items := sub.items()
	for _, s := range prefix {
		a.prefix = append(a.prefix, c.build(s.schema))
	}
	a.items = c.build(items)
	if contains := sub.single("contains"); contains != nil {
		a.contains = &containsRule{node: c.build(contains), min: 1, max: math.MaxInt}
		if sub.dialect >= draft2019 {
			a.contains.min = countOf(sub.keys, "minContains", 1)
			a.contains.max = countOf(sub.keys, "maxContains", math.MaxInt)
		}
	}
	if a.min == 0 && a.max == math.MaxInt && !a.unique && a.prefix == nil && a.items == nil && a.contains == nil {
		return nil
	}
	return &a
}

// items returns the schemas of the first items, and the schema of the remaining items.
func (sub *subschema) items() (prefix []child, rest *subschema) {
	if sub.dialect >= draft2020 {
		return sub.children["prefixItems"], sub.single("items")
	}
	if _, tuple := sub.keys["items"].([]any); tuple {
		return sub.children["items"], sub.single("additionalItems")
	}
	return nil, sub.single("items")
}

func (c *compiler) objectOf(sub *subschema) *objectRule {
	o := objectRule{
		min: countOf(sub.keys, "minProperties", 0), max: countOf(sub.keys, "maxProperties", math.MaxInt),
		required: namesOf(sub.keys["required"]), rest: c.build(sub.single("additionalProperties")), names: c.build(sub.single("propertyNames")),
	}
	if list := sub.children["properties"]; len(list) > 0 {
		o.members = make(map[string]*node, len(list))
		for _, s := range list {
			o.members[s.name] = c.build(s.schema)
			o.declared = append(o.declared, s.name)
			if n := o.members[s.name]; n != nil && n.enum != nil {
				o.discriminators = append(o.discriminators, s.name)
			}
		}
	}
	for _, s := range sub.children["patternProperties"] {
		o.patterns = append(o.patterns, patternRule{c.patterns[s.name], c.build(s.schema)})
	}
	o.dependentRequired = dependentRequiredOf(sub)
	if o.min == 0 && o.max == math.MaxInt && o.required == nil && o.rest == nil && o.names == nil &&
		o.members == nil && o.patterns == nil && o.dependentRequired == nil {
		return nil
	}
	return &o
}

func dependentRequiredOf(sub *subschema) []dependentRequired {
	var needs []dependentRequired
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		if _, known := sub.dialect.lookup(keyword); !known {
			continue
		}
		object, _ := sub.keys[keyword].(map[string]any)
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

func (c *compiler) applicatorsOf(sub *subschema) *applicators {
	var f applicators
	if sub.ref != nil {
		f.all = append(f.all, c.build(sub.ref))
	}
	f.all = append(f.all, c.buildAll(sub.children["allOf"])...)
	f.any, f.one = c.buildAll(sub.children["anyOf"]), c.buildAll(sub.children["oneOf"])
	f.not = c.build(sub.single("not"))
	if test := sub.single("if"); test != nil && (sub.single("then") != nil || sub.single("else") != nil || c.unevaluated) {
		f.when = &condition{c.build(test), c.build(sub.single("then")), c.build(sub.single("else"))}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		for _, s := range sub.children[keyword] {
			f.dependent = append(f.dependent, dependent{s.name, c.build(s.schema)})
		}
	}
	f.dynamic = c.dynamicRefOf(sub)
	if f.all == nil && f.any == nil && f.one == nil && f.not == nil && f.when == nil && f.dependent == nil && f.dynamic == nil {
		return nil
	}
	return &f
}

func (c *compiler) buildAll(subs []child) []*node {
	var list []*node
	for _, s := range subs {
		list = append(list, c.build(s.schema))
	}
	return list
}
