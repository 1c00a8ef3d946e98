package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resolve resolves all references. A reference to a value that is not yet a subschema makes it
// one, so the list grows.
func (c *compiler) resolve() {
	for i := 0; i < len(c.order); i++ {
		p := c.order[i]
		if ref, ok := p.keys["$ref"].(string); ok {
			p.ref = c.target(p, "$ref", ref)
		}
		for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, known := c.dialect.lookup(keyword); !known {
				continue
			}
			if ref, ok := p.keys[keyword].(string); ok {
				c.resolveDynamic(p, keyword, ref)
			}
		}
	}
}

// resolveDynamic adds all possible targets of a dynamic reference.
func (c *compiler) resolveDynamic(sub *subschema, keyword, ref string) {
	if target := c.target(sub, keyword, ref); target != nil {
		sub.dynamic = append(sub.dynamic, target)
	}
	name := "#"
	if keyword == "$dynamicRef" {
		_, name, _ = strings.Cut(ref, "#")
	}
	if c.dynamicTargets += len(c.dynamic[name]); c.dynamicTargets > maxDynamicTargets {
		c.fail(sub.pointer+"/"+keyword, codeUnsafe, fmt.Sprintf("dynamic references have more than %d possible targets", maxDynamicTargets), "use fewer references or anchors")
		return
	}
	for _, target := range c.dynamic[name] {
		if !slices.Contains(sub.dynamic, target) {
			sub.dynamic = append(sub.dynamic, target)
		}
	}
}

// target returns the target of a reference. It returns nil after it has reported an error.
func (c *compiler) target(sub *subschema, keyword, ref string) *subschema {
	at := sub.pointer + "/" + keyword
	uri, err := resolveURI(sub.base, ref)
	if err != nil {
		c.fail(at, codeBad, fmt.Sprintf("%q must be a URI reference", keyword), `write "#/$defs/name"`)
		return nil
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	resource := c.resources[uri.String()]
	switch {
	case resource == nil:
		c.fail(at, codeRemote, "the schema refers to another document, which is not supported",
			`copy the schema to "$defs", and write "#/$defs/name"`)
		return nil
	case fragment == "":
		return resource
	case fragment[0] == '/':
		return c.pointed(resource, fragment, at)
	}
	target := c.anchors[resource.base+"#"+fragment]
	if target == nil {
		c.fail(at, codeBad, fmt.Sprintf("there is no anchor %q", clip(fragment, maxNameBytes)), "add the \"$anchor\", or write a path such as \"#/$defs/name\"")
	}
	return target
}

// pointed returns the subschema at a JSON pointer from a resource.
func (c *compiler) pointed(resource *subschema, pointer, at string) *subschema {
	var value any = resource.keys
	base, where := resource.base, resource.pointer
	for name := range strings.SplitSeq(pointer[1:], "/") {
		name = unescapePointer(name)
		switch inside := value.(type) {
		case map[string]any:
			value = inside[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(inside) {
				value = nil
				break
			}
			value, name = inside[i], strconv.Itoa(i)
		default:
			value = nil
		}
		if value == nil {
			break
		}
		where += "/" + escapePointer(name)
		if passed := c.byPointer[where]; passed != nil {
			base = passed.base
		}
	}
	if value == nil {
		c.fail(at, codeBad, fmt.Sprintf("there is nothing at %q in the schema", clip(pointer, maxSegmentBytes)), "write the path of an existing subschema, such as \"#/$defs/name\"")
		return nil
	}
	return c.add(value, where, base)
}

// resolveURI resolves a reference against a base.
func resolveURI(base, ref string) (*url.URL, error) {
	b, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	r, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Scheme == "" && r.Host == "" && r.Path == "" && r.Opaque == "" && r.RawQuery == "" {
		joined := *b // for an opaque base too, such as a URN
		joined.Fragment, joined.RawFragment = r.Fragment, r.RawFragment
		return &joined, nil
	}
	return b.ResolveReference(r), nil
}

const (
	// maxWork bounds the number of schemas that apply to one value.
	maxWork = 2000
	// maxDynamicTargets bounds the targets of all dynamic references.
	maxDynamicTargets = 1 << 16
)

// checkReferenceCycles reports references that form a cycle without descending into the value.
// It returns false if there are any.
func (c *compiler) checkReferenceCycles() bool {
	s := cycleSearch{compiler: c, state: map[*subschema]int{}}
	for _, p := range c.order {
		if !s.visit(p) {
			return false
		}
	}
	return true
}

// cycleSearch traverses the subschemas that apply to the same value.
type cycleSearch struct {
	compiler *compiler
	state    map[*subschema]int
}

const (
	visiting = 1
	visited  = 2
)

// visit recurses at most as deep as there are subschemas.
func (s *cycleSearch) visit(sub *subschema) bool {
	switch s.state[sub] {
	case visited:
		return true
	case visiting:
		s.compiler.fail(sub.pointer, codeUnsafe, "the schema refers to itself endlessly",
			"refer to it only from a property or an item")
		return false
	}
	s.state[sub] = visiting
	for _, same := range append(sub.sameInstance(), sub.dynamic...) {
		if !s.visit(same) {
			return false
		}
	}
	s.state[sub] = visited
	return true
}

// checkWork reports alternatives that multiply. It requires that there are no cycles.
func (c *compiler) checkWork() {
	e := workEstimate{known: map[*subschema]float64{}}
	for _, p := range c.order {
		if e.of(p) > maxWork {
			c.fail(p.pointer, codeUnsafe, fmt.Sprintf("one value would be checked against more than %d schemas", maxWork),
				"use fewer alternatives: references in allOf, anyOf and oneOf multiply")
			return
		}
	}
}

// workEstimate counts the schemas that apply to a value.
type workEstimate struct{ known map[*subschema]float64 }

func (e *workEstimate) of(sub *subschema) float64 {
	if n, ok := e.known[sub]; ok {
		return n
	}
	n, largest := 1.0, 0.0
	for _, same := range sub.sameInstance() {
		n += e.of(same)
	}
	for _, target := range sub.dynamic {
		largest = max(largest, e.of(target))
	}
	e.known[sub] = n + largest
	return n + largest
}
