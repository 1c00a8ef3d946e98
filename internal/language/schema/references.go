package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resolve finds what every reference refers to. A reference into a place that
// is no schema by its keyword makes it one, so that the list of parts grows.
func (d *compiler) resolve() {
	for i := 0; i < len(d.order); i++ {
		p := d.order[i]
		if ref, ok := p.keys["$ref"].(string); ok {
			p.ref = d.target(p, "$ref", ref)
		}
		for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, known := d.dialect.lookup(keyword); !known {
				continue
			}
			if ref, ok := p.keys[keyword].(string); ok {
				d.resolveDynamic(p, keyword, ref)
			}
		}
	}
}

// resolveDynamic notes everything that a reference may come to mean.
func (d *compiler) resolveDynamic(p *subschema, keyword, ref string) {
	if target := d.target(p, keyword, ref); target != nil {
		p.dynamic = append(p.dynamic, target)
	}
	name := "#"
	if keyword == "$dynamicRef" {
		_, name, _ = strings.Cut(ref, "#")
	}
	if d.dynamicTargets += len(d.dynamic[name]); d.dynamicTargets > maxDynamicTargets {
		d.fail(p.pointer+"/"+keyword, codeUnsafe, fmt.Sprintf("dynamic references and their anchors make more than %d pairs", maxDynamicTargets), "make one of them fewer")
		return
	}
	for _, target := range d.dynamic[name] {
		if !slices.Contains(p.dynamic, target) {
			p.dynamic = append(p.dynamic, target)
		}
	}
}

// target returns the part that a reference refers to. It returns nil when it
// reported a mistake.
func (d *compiler) target(p *subschema, keyword, ref string) *subschema {
	at := p.pointer + "/" + keyword
	uri, err := resolveURI(p.base, ref)
	if err != nil {
		d.fail(at, codeBad, fmt.Sprintf("%q must be a URI reference", keyword), `write "#/$defs/name"`)
		return nil
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	resource := d.resources[uri.String()]
	switch {
	case resource == nil:
		d.fail(at, codeRemote, "the schema refers to another document, and nothing is loaded from elsewhere",
			`copy what is needed to "$defs", and write "#/$defs/name"`)
		return nil
	case fragment == "":
		return resource
	case fragment[0] == '/':
		return d.pointed(resource, fragment, at)
	}
	target := d.anchors[resource.base+"#"+fragment]
	if target == nil {
		d.fail(at, codeBad, fmt.Sprintf("there is no anchor %q", clip(fragment, maxNameBytes)), "write \"$anchor\" where it should lead, or a path such as \"#/$defs/name\"")
	}
	return target
}

// pointed returns the part at a JSON pointer from a resource.
func (d *compiler) pointed(resource *subschema, pointer, at string) *subschema {
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
		if passed := d.byPointer[where]; passed != nil {
			base = passed.base
		}
	}
	if value == nil {
		d.fail(at, codeBad, fmt.Sprintf("there is nothing at %q in the schema", clip(pointer, maxSegmentBytes)), "write the path of a part that there is, such as \"#/$defs/name\"")
		return nil
	}
	return d.add(value, where, base)
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
		joined := *b // also where the base is opaque, such as a URN
		joined.Fragment, joined.RawFragment = r.Fragment, r.RawFragment
		return &joined, nil
	}
	return b.ResolveReference(r), nil
}

const (
	// mostWork bounds how many schemas one value may be held against.
	maxWork = 2000
	// mostMeanings bounds how many parts all dynamic references together may refer to.
	maxDynamicTargets = 1 << 16
)

// checkCircles reports references that come back to where they started without
// going into the value. It reports false when there are some.
func (d *compiler) checkReferenceCycles() bool {
	w := cycleSearch{document: d, state: map[*subschema]int{}}
	for _, p := range d.order {
		if !w.visit(p) {
			return false
		}
	}
	return true
}

// A walk goes along everything that is held against the same value.
type cycleSearch struct {
	document *compiler
	state    map[*subschema]int
}

const (
	visiting = 1
	visited  = 2
)

// visit goes no deeper than there are parts.
func (w *cycleSearch) visit(p *subschema) bool {
	switch w.state[p] {
	case visited:
		return true
	case visiting:
		w.document.fail(p.pointer, codeUnsafe, "the schema refers to itself without end",
			"a schema may refer to itself only from within a property or an item")
		return false
	}
	w.state[p] = visiting
	for _, same := range append(p.sameInstance(), p.dynamic...) {
		if !w.visit(same) {
			return false
		}
	}
	w.state[p] = visited
	return true
}

// checkWork reports alternatives that multiply. Circles have been ruled out.
func (d *compiler) checkWork() {
	e := workEstimate{known: map[*subschema]float64{}}
	for _, p := range d.order {
		if e.of(p) > maxWork {
			d.fail(p.pointer, codeUnsafe, fmt.Sprintf("one value would be held against more than %d schemas", maxWork),
				"references within allOf, anyOf and oneOf multiply; make the alternatives fewer")
			return
		}
	}
}

// An effort counts how many schemas a value is held against.
type workEstimate struct{ known map[*subschema]float64 }

func (e *workEstimate) of(p *subschema) float64 {
	if n, ok := e.known[p]; ok {
		return n
	}
	n, largest := 1.0, 0.0
	for _, same := range p.sameInstance() {
		n += e.of(same)
	}
	for _, target := range p.dynamic {
		largest = max(largest, e.of(target))
	}
	e.known[p] = n + largest
	return n + largest
}
