package lsp

import (
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"
)

// cursor is a position in a source with what surrounds it.
type cursor struct {
	*source
	index  *index
	offset int
	// owner is the tool file with block: the source itself, or the one that names the script file.
	owner *source
	block *block    // the innermost block, or the one whose argument names the script file
	arg   *argument // nil outside of an argument
	// inValue is set behind the equals sign of arg.
	inValue bool
	// file is set in a script file.
	file *scriptFile
}

// cursorAt returns the cursor of a request, or nil in a file that is neither HCL nor the script of a block.
func (s *session) cursorAt(r *jrpc2.Request) (*cursor, error) {
	var params positionParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, unit, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	x := s.index()
	for _, found := range x.sources {
		if found.document == d {
			return newCursor(x, found, unit.offset(d.text, params.Position)), nil
		}
	}
	if f := x.scriptFile(d); f != nil {
		return f.cursor(x, unit.offset(d.text, params.Position)), nil
	}
	return nil, nil
}

func newCursor(x *index, s *source, offset int) *cursor {
	p := &cursor{source: s, index: x, offset: offset, owner: s, block: s.root.inside(offset)}
	p.arg = p.block.argumentAt(offset)
	p.inValue = p.arg != nil && p.arg.hasEqual && offset >= p.arg.value
	return p
}

// quoted returns the string around the cursor.
func (p *cursor) quoted() (q quoted, ok bool) {
	if !p.inValue || p.file != nil {
		return q, false
	}
	for _, q := range p.strings(p.arg) {
		if q.start <= p.offset && p.offset <= q.end {
			return q, true
		}
	}
	return q, false
}

// label returns the label around the cursor, its index, and its block.
func (p *cursor) label() (b *block, number int, ok bool) {
	if p.file != nil {
		return nil, 0, false
	}
	for _, b := range p.block.blocks {
		for i, l := range b.labels {
			if l.start <= p.offset && p.offset <= l.end {
				return b, i, true
			}
		}
	}
	return nil, 0, false
}

// head returns the block whose kind is around the cursor.
func (p *cursor) head() *block {
	if p.file != nil {
		return nil
	}
	for _, b := range p.block.blocks {
		if b.kindStart <= p.offset && p.offset <= b.kindStart+len(b.kind) {
			return b
		}
	}
	return nil
}

// wordRange returns the range of the name around an offset.
func wordRange(text string, offset int) (start, end int) {
	start, end = offset, offset
	for start > 0 && isWordByte(text[start-1]) {
		start--
	}
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return start, end
}

// maxChain bounds the names of a chain, and maxChainName each of them.
const (
	maxChain     = 8
	maxChainName = 200
)

// chain returns the names of an expression such as http.crm.get up to the name around an offset, and
// where the last one starts. The last name is complete if whole is set, and ends at the offset
// otherwise.
func chain(text string, offset int, whole bool) (names []string, start int) {
	identifier := func(c byte) bool { return isWordByte(c) && c != '-' || c == '$' }
	end := offset
	for whole && end < len(text) && identifier(text[end]) {
		end++
	}
	start = end
	for at := end; len(names) < maxChain; {
		from := at
		for from > 0 && identifier(text[from-1]) && at-from <= maxChainName {
			from--
		}
		names = append(names, text[from:at])
		if len(names) == 1 {
			start = from
		}
		if from == 0 || text[from-1] != '.' {
			break
		}
		at = from - 1
		if at > 0 && text[at-1] == '?' {
			at-- // input?.name
		}
	}
	slices.Reverse(names)
	return names, start
}

// language returns the language around the cursor.
func (p *cursor) language() language {
	if p.file != nil {
		return p.file.language
	}
	if !p.inValue {
		return noCode
	}
	value := p.text[p.arg.value:min(p.arg.valueEnd, p.arg.value+16)]
	return languageOf(p.block, p.arg.name, value)
}

// names returns the kind of top-level block that the strings of an argument name, or "".
func (p *cursor) names() string {
	if p.arg == nil || p.file != nil {
		return ""
	}
	return nameKind(p.block, p.arg.name)
}

// nameKind returns the kind of top-level block that the strings of an argument name, or "".
func nameKind(b *block, argument string) string {
	switch argument {
	case "tools":
		if b.kind != "ceiling" {
			return "tool"
		}
	case "tool", "prompt":
		if b.kind == "test" {
			return argument
		}
	case "prompts":
		return "prompt"
	case "resources":
		return "resource"
	case "denied_by":
		return "policy"
	case "names":
		if b.kind == "secrets" {
			return "secret"
		}
	case "reads":
		return "secret"
	}
	return ""
}

// field is a named value with a type: an input, an output, or an argument of a prompt.
type field struct {
	declared
	owner *block // the tool, prompt or template
}

// inputsOf returns the inputs of a tool, prompt or template.
func inputsOf(d declared) (fields []field) {
	kind := map[string]string{"tool": "input", "prompt": "argument", "resource_template": "param"}[d.kindOf()]
	for _, b := range d.block.blocks {
		if b.kind == kind && b.name() != "" {
			fields = append(fields, field{declared{d.source, b}, d.block})
		}
	}
	return fields
}

func (d declared) kindOf() string { return d.block.kind }

// inputs returns what input (in a script) or args (in CEL) has at the cursor. A policy without tools
// could see the inputs of every tool, so it has none here.
func (p *cursor) inputs() (fields []field) {
	for b := p.block; b != nil; b = b.outer {
		switch b.kind {
		case "tool", "prompt", "resource_template":
			return inputsOf(declared{p.owner, b})
		case "policy", "limit":
			for _, pattern := range p.owner.stringsOf(b, "tools") {
				for _, tool := range p.index.named("tool", pattern) {
					fields = append(fields, inputsOf(tool)...)
				}
			}
			return fields
		}
	}
	return nil
}

// tested returns the tools and prompts that the test around the cursor calls.
func (p *cursor) tested() (found []declared) {
	test := p.block.enclosing("test")
	if test == nil {
		return nil
	}
	for _, kind := range []string{"tool", "prompt"} {
		if name := p.owner.literal(test, kind); name != "" {
			found = append(found, p.index.named(kind, name)...)
		}
	}
	return found
}

// grants returns the grant blocks of the script around the cursor, such as http "crm".
func (p *cursor) grants() (found []declared) {
	for b := p.block; b != nil; b = b.outer {
		for _, inner := range b.blocks {
			if inner.kind == "allow" {
				for _, grant := range inner.blocks {
					found = append(found, declared{p.owner, grant})
				}
			}
		}
	}
	return found
}

// prose returns the description of a block, with its type if it has one, in Markdown.
func prose(d declared) string {
	var parts []string
	if typ := d.source.word(d.block, "type"); typ != "" {
		parts = append(parts, "`"+strings.ReplaceAll(typ, "`", "")+"`")
	}
	if text := d.source.literal(d.block, "description"); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}
