package toolprompt

import (
	"net/url"
	"strconv"
	"strings"
)

// maxRef bounds the bytes of a reference that is followed.
const maxRef = 512

// document is a schema, within which references are followed.
type document struct {
	root node
	id   string
	// anchors are made for the first reference to one.
	anchors map[string]*node
}

func newDocument(raw []byte) *document {
	d := &document{root: read(raw)}
	d.id = strings.TrimSuffix(d.root.say("$id"), "#")
	return d
}

// reference returns what a schema refers to, as it is written.
func reference(n *node) (ref string, ok bool) {
	for _, keyword := range [...]string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if m := n.of(textKind, keyword); m != nil {
			return m.text, true
		}
	}
	return "", false
}

// resolve returns the schema that a reference names, nil where it is not in the
// document.
func (d *document) resolve(ref string) *node {
	if len(ref) > maxRef {
		return nil
	}
	ref = strings.TrimPrefix(ref, d.id)
	if ref == "" {
		return &d.root
	}
	fragment, err := url.PathUnescape(ref[1:])
	switch {
	case ref[0] != '#' || err != nil:
		return nil
	case fragment == "":
		return &d.root
	case fragment[0] == '/':
		return d.pointed(fragment[1:])
	}
	return d.anchored(fragment)
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func (d *document) pointed(pointer string) *node {
	at := &d.root
	for segment := range strings.SplitSeq(pointer, "/") {
		switch at.kind {
		case objectKind:
			at = at.member(unescapePointer.Replace(segment))
		case listKind:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(at.items) {
				return nil
			}
			at = &at.items[i]
		default:
			return nil
		}
		if at == nil {
			return nil
		}
	}
	return at
}

func (d *document) anchored(anchor string) *node {
	if d.anchors == nil {
		d.anchors = map[string]*node{}
		d.find(&d.root)
	}
	return d.anchors[anchor]
}

// find notes the anchors of a schema and of all in it. The first of a name counts.
func (d *document) find(n *node) {
	for _, name := range [...]string{n.say("$anchor"), n.say("$dynamicAnchor"), strings.TrimPrefix(n.say("$id"), "#")} {
		if name != "" && d.anchors[name] == nil {
			d.anchors[name] = n
		}
	}
	for i := range n.items {
		d.find(&n.items[i])
	}
}

// alternatives are the keywords of which each names a list of schemas.
var alternatives = [...]string{"anyOf", "oneOf"}

// circular reports whether a type would be defined by itself alone, were it to
// refer to from: whether to is reached from there by references, unions and
// intersections. Where the steps do not suffice to tell, it is.
func (d *document) circular(from, to *node, steps *int) bool {
	seen := map[*node]bool{}
	waiting := []*node{from}
	for len(waiting) > 0 {
		n := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if *steps--; n == to || *steps < 0 {
			return true
		}
		if seen[n] {
			continue
		}
		seen[n] = true
		if ref, ok := reference(n); ok {
			if target := d.resolve(ref); target != nil {
				waiting = append(waiting, target)
			}
		}
		for _, keyword := range [...]string{"allOf", "anyOf", "oneOf"} {
			if choices := n.of(listKind, keyword); choices != nil {
				for i := range choices.items[:min(len(choices.items), maxAlternatives)] {
					waiting = append(waiting, &choices.items[i])
				}
			}
		}
	}
	return false
}
