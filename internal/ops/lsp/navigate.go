package lsp

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/internal/base/wildcard"
)

// Values of SymbolKind.
const (
	symbolModule   = 2
	symbolProperty = 7
	symbolFunction = 12
)

// symbols answers with the blocks of a document.
func (s *session) symbols(_ context.Context, r *jrpc2.Request) (any, error) {
	var params documentParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, unit, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(d.path, ".hcl") {
		return []documentSymbol{}, nil
	}
	s.mu.Lock()
	nested, project := s.client.Capabilities.TextDocument.DocumentSymbol.Hierarchical, s.project
	s.mu.Unlock()
	s.indexing.Lock()
	file := s.documentSource(d, project)
	s.indexing.Unlock()
	if nested {
		return file.symbols(unit, file.root), nil
	}
	flat := []symbolInformation{}
	file.root.each(func(b *block) {
		flat = append(flat, symbolInformation{b.title(), b.symbolKind(), location{d.uri, file.span(unit, b.kindStart, b.end)}})
	})
	return flat, nil
}

// symbols returns the blocks in a block, with their own blocks.
func (s *source) symbols(e encoding, outer *block) []documentSymbol {
	all := []documentSymbol{}
	for _, b := range outer.blocks {
		start, end := b.nameRange()
		symbol := documentSymbol{
			Name: b.title(), Kind: b.symbolKind(), Range: s.span(e, b.kindStart, b.end), SelectionRange: s.span(e, start, end),
			Children: s.symbols(e, b),
		}
		if symbol.Name != b.kind {
			symbol.Detail = b.kind
		}
		all = append(all, symbol)
	}
	return all
}

func (b *block) symbolKind() int {
	switch {
	case b.outer != nil && b.outer.outer == nil && b.kind == "tool":
		return symbolFunction
	case b.kind == "input" || b.kind == "output" || b.kind == "field":
		return symbolProperty
	}
	return symbolModule
}

// hover answers with what the reference or the files say about the name at a position.
func (s *session) hover(_ context.Context, r *jrpc2.Request) (any, error) {
	p, err := s.cursorAt(r)
	if err != nil || p == nil {
		return nil, err
	}
	text, start, end := p.hover()
	if text == "" {
		return nil, nil
	}
	return hover{markup{"markdown", text}, p.index.unit.span(p.text, start, end)}, nil
}

// hover returns the text about the name at the cursor, and the range of the name.
func (p *cursor) hover() (text string, start, end int) {
	if b := p.head(); b != nil && b.allowed {
		return describeInner(b.outer, b.kind).markdown(b.kind), b.kindStart, b.kindStart + len(b.kind)
	}
	if b, number, ok := p.label(); ok {
		l := b.labels[number]
		return prose(declared{p.source, b}), l.start, l.end
	}
	if p.arg == nil {
		return "", 0, 0
	}
	if p.file == nil && p.offset <= p.arg.nameEnd {
		for _, a := range p.block.grammar.Arguments() {
			if a.Name == p.arg.name {
				return describe(p.block, a.Name).markdown(a.Name), p.arg.start, p.arg.nameEnd
			}
		}
		return "", 0, 0
	}
	if path, start, scope := p.codePath(); scope != nil {
		end := start + len(path[len(path)-1])
		for _, m := range scope.members(path[:len(path)-1]) {
			if m.name == path[len(path)-1] {
				return m.hover(), start, end
			}
		}
		return "", 0, 0
	}
	found, start, end := p.targets()
	for _, d := range found {
		if about := prose(d); about != "" {
			return "**" + d.block.kind + " " + d.name() + "**\n\n" + about, start, end
		}
	}
	return "", 0, 0
}

func (m member) hover() string {
	if strings.HasPrefix(m.typ, "(") {
		return "`" + m.name + m.typ + "`\n\n" + m.text
	}
	if m.text == "" {
		return ""
	}
	return "**" + m.name + "**\n\n" + m.text
}

// codePath returns the names of the expression at a place in code, where the last one starts, and the
// scope; nil if there is none.
func (p *cursor) codePath() (path []string, start int, s scope) {
	switch p.language() {
	case javaScript, typeScript:
		s = p.scriptScope()
	case cel:
		s = p.celScope()
	default:
		return nil, 0, nil
	}
	path, start = chain(p.text, p.offset, true)
	if path[len(path)-1] == "" {
		return nil, 0, nil
	}
	return path, start, s
}

// targets returns the blocks that the name at the cursor stands for, and the range of the name.
func (p *cursor) targets() (found []declared, start, end int) {
	if path, start, scope := p.codePath(); scope != nil {
		return scope.definition(path), start, start + len(path[len(path)-1])
	}
	if q, ok := p.quoted(); ok {
		if kind := p.names(); kind != "" {
			return p.index.named(kind, q.text), q.start, q.end
		}
		if p.block.kind == "test" && p.arg.name == "complete" {
			for _, d := range p.tested() {
				found = append(found, fieldDeclarations(inputsOf(d), []string{q.text})...)
			}
			return found, q.start, q.end
		}
	}
	if !p.inValue || p.file != nil {
		return nil, 0, 0
	}
	path, start := chain(p.text, p.offset, true)
	last := path[len(path)-1]
	end = start + len(last)
	if len(path) == 2 {
		switch path[0] {
		case "var":
			return p.index.named("variable", last), start, end
		case "secret":
			return p.index.named("secret", last), start, end
		}
	}
	if len(path) == 1 && last != "" && p.block.kind == "test" && p.arg.name == "input" {
		for _, d := range p.tested() {
			found = append(found, fieldDeclarations(inputsOf(d), path)...)
		}
	}
	return found, start, end
}

// definition answers with where the name at a position is defined: the tool of a test, a policy or a
// call, the policy of a denial, the file of file(), a variable, an input or a grant. At the name of a
// block, it answers with the blocks that refer to it.
func (s *session) definition(_ context.Context, r *jrpc2.Request) (any, error) {
	p, err := s.cursorAt(r)
	if err != nil || p == nil {
		return []location{}, err
	}
	if path := p.referencedFile(); path != "" {
		return []location{{URI: uriOf(path)}}, nil
	}
	if b, number, ok := p.label(); ok && number == 0 {
		return p.index.references(b.kind, b.name()), nil
	}
	found, _, _ := p.targets()
	locations := []location{}
	for _, d := range found {
		locations = append(locations, p.index.labelLocation(d))
	}
	return locations, nil
}

// references answers with the strings that name the block at a position.
func (s *session) references(_ context.Context, r *jrpc2.Request) (any, error) {
	p, err := s.cursorAt(r)
	if err != nil || p == nil {
		return []location{}, err
	}
	if b, number, ok := p.label(); ok && number == 0 {
		return p.index.references(b.kind, b.name()), nil
	}
	locations := []location{}
	found, _, _ := p.targets()
	for _, d := range found {
		locations = append(locations, p.index.references(d.block.kind, d.name())...)
	}
	return locations, nil
}

// references returns the strings that name a top-level block.
func (x *index) references(kind, name string) []location {
	locations := []location{}
	if strings.HasPrefix(kind, "resource") {
		kind = "resource"
	}
	for _, s := range x.sources {
		s.root.each(func(b *block) {
			for i := range b.arguments {
				a := &b.arguments[i]
				if nameKind(b, a.name) != kind {
					continue
				}
				for _, q := range s.strings(a) {
					if q.text == name || wildcard.Is(q.text) && wildcard.Matches(q.text, name) {
						locations = append(locations, x.location(s, q.start, q.end))
					}
				}
			}
		})
	}
	return locations
}

// referencedFile returns the path of the file that the string at the cursor names, if it exists.
func (p *cursor) referencedFile() string {
	q, ok := p.quoted()
	if !ok {
		return ""
	}
	before := strings.TrimRight(p.text[p.arg.value:q.start-1], " \t\n")
	isFile := strings.HasSuffix(before, "file(") || p.arg.name == "file" && p.block.kind != "secret"
	if !isFile || q.text == "" || strings.ContainsAny(q.text, "\x00$") || !filepath.IsLocal(filepath.FromSlash(q.text)) {
		return ""
	}
	path := filepath.Join(filepath.Dir(p.path), filepath.FromSlash(q.text))
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}
