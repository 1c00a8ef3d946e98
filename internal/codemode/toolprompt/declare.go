package toolprompt

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

const (
	// maxDescription bounds a tool's description in bytes, and maxLines in lines.
	maxDescription = 4 << 10
	maxLines       = 60
)

// noDescription is the text of RFC 003 for a tool without a description.
const noDescription = "No description"

// Describe returns the full declaration of one tool, as in a list without name conflicts.
func Describe(t Tool) string { return Declare([]Tool{t}, Full) }

// Declare returns the declarations of tools in TypeScript, sorted by name in bytewise order.
// For [NamesOnly] it returns a list of the names.
func Declare(tools []Tool, d Detail) string {
	entries := newEntries(tools)
	if d >= NamesOnly {
		var calls []string
		for _, e := range entries {
			for i := range e.tools {
				calls = append(calls, e.call(i))
			}
		}
		return strings.Join(calls, ", ")
	}
	names := typeNames{"Promise": 1}
	for _, e := range entries {
		names[e.name] = 1
	}
	blocks := make([]string, len(entries))
	for i, e := range entries {
		blocks[i] = e.declare(d, names)
	}
	return strings.Join(blocks, "\n")
}

// declare returns the declaration of an entry, after the types that it needs.
func (e *entry) declare(d Detail, names typeNames) string {
	if e.members == nil {
		p := newPrinter(e.tools[0].Name, d, names, promptLimits())
		function := p.function(e.tools[0], "declare function "+e.name, 0)
		return p.types.String() + function
	}
	var types, functions strings.Builder
	for i, t := range e.tools {
		p := newPrinter(t.Name, d, names, promptLimits())
		functions.WriteString("  " + p.function(t, propertyKey(e.members[i]), 1))
		types.WriteString(p.types.String())
	}
	return types.String() + "declare const " + e.name + ": {\n" + functions.String() + "};\n"
}

// function prints a tool as a function that starts with head.
func (p *printer) function(t *Tool, head string, indent int) string {
	doc := comment(p.toolDoc(t), indentation(indent))
	if doc != "" {
		doc += indentation(indent)
	}
	return doc + head + "(args" + p.arguments(t, indent) + "): Promise<" + p.result(t, indent) + ">;\n"
}

// arguments prints the type of the argument, after the mark for required or optional.
func (p *printer) arguments(t *Tool, indent int) string {
	if p.detail >= WithoutArguments {
		doc := newDocument(t.Input, p.limits)
		return argumentsMark(&doc.root) + "object"
	}
	printed, doc := p.root(t.Input, indent)
	if printed == unknown.text {
		printed = anyObject.text
	}
	return argumentsMark(&doc.root) + printed
}

// argumentsMark returns the optional mark if no argument is required.
func argumentsMark(schema *node) string {
	for _, keyword := range [...]string{"$ref", "allOf", "anyOf", "oneOf", "enum", "const"} {
		if schema.member(keyword) != nil {
			return ": "
		}
	}
	if required := schema.memberOfKind(listKind, "required"); schema.kind != objectKind || required != nil && len(required.items) > 0 {
		return ": "
	}
	return "?: "
}

func (p *printer) result(t *Tool, indent int) string {
	if t.Output == nil || p.detail >= WithoutResults {
		return unknown.text
	}
	printed, _ := p.root(t.Output, indent)
	return printed
}

// toolDoc returns the comment lines of a tool. The last line has the annotations; no line of a
// description can look like it.
func (p *printer) toolDoc(t *Tool) []string {
	var lines []string
	if p.detail >= FirstSentences {
		for _, described := range [...]string{t.Description, t.Title, noDescription} {
			if first := FirstSentence(described); first != "" {
				lines = []string{first}
				break
			}
		}
	} else {
		lines = commentLines(titleOf(t)+"\n"+truncate.Start(t.Description, maxDescription), maxLines)
		if len(lines) == 0 {
			lines = []string{noDescription}
		}
		if len(t.Description) > maxDescription {
			lines = append(lines, ellipsis)
		}
	}
	tags := annotations(t)
	switch {
	case tags == "":
		return lines
	case len(lines) == 1:
		return []string{lines[0] + " " + tags}
	}
	return append(lines, tags)
}

// titleOf returns the title of a tool, or "" if it only repeats a name.
func titleOf(t *Tool) string {
	for _, name := range [...]string{t.Name, t.Member} {
		if strings.EqualFold(pascalCase(name), pascalCase(t.Title)) {
			return ""
		}
	}
	return t.Title
}

func annotations(t *Tool) string {
	switch {
	case t.ReadOnly != nil && *t.ReadOnly:
		return "@readonly"
	case t.Destructive != nil && *t.Destructive:
		return "@destructive"
	}
	return ""
}

// maxRef bounds a reference, in bytes.
const maxRef = 512

// document is a schema. References are resolved within it.
type document struct {
	root node
	id   string
	// alternatives bounds the followed types of a union or an intersection.
	alternatives int
	// anchors are collected for the first reference to one.
	anchors map[string]*node
}

func newDocument(raw []byte, l limits) *document {
	d := &document{root: parseNode(raw, l), alternatives: l.alternatives}
	d.id = strings.TrimSuffix(d.root.stringMember("$id"), "#")
	return d
}

// reference returns the reference in a schema, unresolved.
func reference(n *node) (ref string, ok bool) {
	for _, keyword := range [...]string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if m := n.memberOfKind(textKind, keyword); m != nil {
			return m.text, true
		}
	}
	return "", false
}

// resolve returns the schema of a reference, or nil if it is not in the document.
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
		return d.resolvePointer(fragment[1:])
	}
	if d.anchors == nil {
		d.anchors = map[string]*node{}
		d.collectAnchors(&d.root)
	}
	return d.anchors[fragment]
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func (d *document) resolvePointer(pointer string) *node {
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

// collectAnchors collects the anchors of a schema and its subschemas. The first of a name
// applies.
func (d *document) collectAnchors(n *node) {
	for _, name := range [...]string{n.stringMember("$anchor"), n.stringMember("$dynamicAnchor"), strings.TrimPrefix(n.stringMember("$id"), "#")} {
		if name != "" && d.anchors[name] == nil {
			d.anchors[name] = n
		}
	}
	for i := range n.items {
		d.collectAnchors(&n.items[i])
	}
}

// alternatives are the keywords with a list of alternative schemas.
var alternatives = [...]string{"anyOf", "oneOf"}

// circular reports whether a type that refers to from would only be defined by itself: whether
// to is reachable from there through references, unions and intersections. It returns true if
// steps runs out.
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
			if choices := n.memberOfKind(listKind, keyword); choices != nil {
				for i := range choices.items[:min(len(choices.items), d.alternatives)] {
					waiting = append(waiting, &choices.items[i])
				}
			}
		}
	}
	return false
}
