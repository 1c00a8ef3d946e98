package lsp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// errRefused is the code of the specification for a request that is valid, and fails.
const errRefused = jrpc2.Code(-32803)

// renaming renames a tool, or an input of a tool. It edits a reference only if it is certain to mean
// the tool or input. If a text may refer to it by other means, it fails and says where.
type renaming struct {
	index  *index
	read   func(path string) *source // of a file that is not HCL; nil if it cannot be read
	tool   declared
	input  *block // nil to rename the tool
	from   string
	to     string
	edits  map[*source][]offsetEdit
	seen   map[string]*source // files that are not HCL, by path
	tokens map[scriptRange]tokenized
	failed error
	// relative names a file in errors.
	relative func(path string) string
}

// offsetEdit replaces a range of a source.
type offsetEdit struct {
	start, end int
	text       string
}

// toolName and inputName match the names that a rename accepts. All names of inputs work as members
// in scripts and in CEL.
var (
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// prepareRename answers with the range of the name at a position, or null if it cannot be renamed.
func (s *session) prepareRename(_ context.Context, r *jrpc2.Request) (any, error) {
	p, err := s.cursorAt(r)
	if err != nil || p == nil {
		return nil, err
	}
	target, start, end := p.renamed()
	if target == nil {
		return nil, nil
	}
	return renameRange{p.index.unit.span(p.text, start, end), p.text[start:end]}, nil
}

// rename answers with the edits that rename the tool or input at a position.
func (s *session) rename(_ context.Context, r *jrpc2.Request) (any, error) {
	var params renameParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	p, err := s.cursorAt(r)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, jrpc2.Errorf(errRefused, "there is no tool and no input to rename here")
	}
	target, start, end := p.renamed()
	if target == nil {
		return nil, jrpc2.Errorf(errRefused, "there is no tool and no input to rename here")
	}
	s.renames.Lock()
	defer s.renames.Unlock()
	v := &view{session: s}
	rn := newRenaming(p, *target, params.NewName)
	rn.read, rn.relative = s.plainFile, v.relative
	if rn.collect(); rn.failed != nil {
		return nil, jrpc2.Errorf(errRefused, "%v", rn.failed)
	}
	if !slices.ContainsFunc(rn.edits[p.source], func(e offsetEdit) bool { return e.start <= end && start <= e.end }) {
		return nil, jrpc2.Errorf(errRefused, "this may be another %s", rn.from)
	}
	if err := s.checkRenamed(rn); err != nil {
		return nil, jrpc2.Errorf(errRefused, "%v", err)
	}
	return s.workspaceEdit(rn), nil
}

// newRenaming returns a renaming of a tool or input from a cursor.
func newRenaming(p *cursor, target declared, to string) *renaming {
	r := &renaming{
		index: p.index, tool: target, from: target.name(), to: to,
		edits: map[*source][]offsetEdit{}, seen: map[string]*source{p.path: p.source}, tokens: map[scriptRange]tokenized{},
	}
	if target.block.kind == "input" {
		r.tool, r.input = declared{target.source, target.block.outer}, target.block
	}
	return r
}

// renamed returns the tool or input at the cursor, and the range of its name; nil if there is none.
func (p *cursor) renamed() (target *declared, start, end int) {
	if b, number, ok := p.label(); ok {
		l := b.labels[number]
		switch {
		case !b.allowed:
		case b.kind == "tool" && number == 0, b.kind == "input" && b.outer.kind == "tool":
			return &declared{p.source, b}, l.start, l.end
		case b.kind == "mock" && number == 1 && b.name() == "tools":
			if found := p.index.named("tool", l.text); len(found) == 1 {
				return &found[0], l.start, l.end
			}
		}
		return nil, 0, 0
	}
	if p.arg == nil {
		return nil, 0, 0
	}
	found, start, end := p.targets()
	if len(found) != 1 || start >= end || found[0].name() != p.text[start:end] {
		return nil, 0, 0
	}
	switch b := found[0].block; {
	case b.kind == "tool" && b.outer.outer == nil, b.kind == "input" && b.outer.kind == "tool":
		return &found[0], start, end
	}
	return nil, 0, 0
}

// collect finds the edits, or sets failed.
func (r *renaming) collect() {
	name, kind := toolName, "a tool: write 1 to 64 letters, digits, _, . and -"
	if r.input != nil {
		name, kind = inputName, "an input: write at most 64 letters, digits and _, without a digit at the start"
	}
	if !name.MatchString(r.to) {
		r.failed = fmt.Errorf("%.100q is no name of %s", r.to, kind)
		return
	}
	if found := r.index.named("tool", r.tool.name()); len(found) != 1 {
		r.failed = fmt.Errorf("%d tools have the name %s", len(found), r.tool.name())
		return
	}
	for _, s := range r.index.sources {
		if r.input == nil {
			r.toolReferences(s)
		} else {
			r.inputReferences(s)
		}
	}
	r.jsonFiles()
}

// fail records the first text that may refer to the name.
func (r *renaming) fail(s *source, offset int, format string, args ...any) {
	if r.failed == nil {
		at := s.span(utf16, offset, offset).Start
		r.failed = fmt.Errorf("%s:%d: %s", r.relative(s.path), at.Line+1, fmt.Sprintf(format, args...))
	}
}

// maxEdits bounds the edits of a file.
const maxEdits = 10_000

// edit replaces a range. A range that has an edit keeps it: scripts may share a file.
func (r *renaming) edit(s *source, start, end int, text string) {
	e := offsetEdit{start, end, text}
	if len(r.edits[s]) >= maxEdits {
		r.fail(s, start, "this file has more than %d references", maxEdits)
		return
	}
	if !slices.Contains(r.edits[s], e) {
		r.edits[s] = append(r.edits[s], e)
	}
}

// file returns a file that is not HCL.
func (r *renaming) file(path string) *source {
	s, known := r.seen[path]
	if !known {
		s = r.read(path)
		r.seen[path] = s
	}
	return s
}

// jsonFiles fails if a tool file in HCL's JSON syntax has the name of the tool.
func (r *renaming) jsonFiles() {
	for _, path := range r.index.jsonFiles {
		s := r.file(path)
		if s == nil {
			continue
		}
		if i := strings.Index(s.text, `"`+r.tool.name()+`"`); i >= 0 {
			r.fail(s, i, "%s is used in JSON syntax, in which mcpd renames nothing", r.tool.name())
		}
	}
}

// plainFile returns an open document or a file on disk that is not HCL; nil if it cannot be read.
func (s *session) plainFile(path string) *source {
	s.mu.Lock()
	d := s.documents[path]
	s.mu.Unlock()
	if d != nil {
		return plainSource(d)
	}
	if !isFile(path) {
		return nil
	}
	return newPlainSource(path, uriOf(path), readFile(path))
}

// apply returns the text of a source with edits.
func (s *source) apply(edits []offsetEdit) string {
	var text strings.Builder
	at := 0
	for _, e := range slices.SortedFunc(slices.Values(edits), func(a, b offsetEdit) int { return cmp.Compare(a.start, b.start) }) {
		text.WriteString(s.text[at:e.start])
		text.WriteString(e.text)
		at = e.end
	}
	text.WriteString(s.text[at:])
	return text.String()
}

// checkRenamed checks the files before and after a rename, in memory. It returns an error if the
// rename adds a diagnostic.
func (s *session) checkRenamed(r *renaming) error {
	s.mu.Lock()
	open, root := maps.Clone(s.documents), s.root
	s.mu.Unlock()
	var files loader.Overlay
	for path, d := range open {
		files.Set(path, []byte(d.text))
	}
	project, err := s.options.Open(root, &files)
	if err != nil {
		return fmt.Errorf("the files cannot be checked: %w", err)
	}
	if project.Close != nil {
		defer project.Close()
	}
	known := map[string]int{}
	key := func(d diag.Diagnostic) string { return d.Range.File + "\x00" + d.Code }
	for _, d := range project.Check(Change{All: true}) {
		known[key(d)]++
	}
	for renamed, edits := range r.edits {
		files.Set(renamed.path, []byte(renamed.apply(edits)))
	}
	for _, d := range project.Check(Change{All: true}) {
		if known[key(d)]--; known[key(d)] < 0 {
			line := ""
			if d.Range.Start.Line > 0 {
				line = fmt.Sprintf(":%d", d.Range.Start.Line)
			}
			return fmt.Errorf("%s%s: with the new name, %s", r.relative(filepath.Clean(filepath.FromSlash(d.Range.File))), line, d.Summary)
		}
	}
	return nil
}

// workspaceEdit returns the edits of a rename, with the versions of the open documents if the client
// understands them.
func (s *session) workspaceEdit(r *renaming) workspaceEdit {
	s.mu.Lock()
	versioned := s.client.Capabilities.Workspace.WorkspaceEdit.DocumentChanges
	s.mu.Unlock()
	var out workspaceEdit
	for _, file := range slices.SortedFunc(maps.Keys(r.edits), func(a, b *source) int { return cmp.Compare(a.path, b.path) }) {
		edits := []textEdit{}
		for _, e := range slices.SortedFunc(slices.Values(r.edits[file]), func(a, b offsetEdit) int { return cmp.Compare(a.start, b.start) }) {
			edits = append(edits, textEdit{file.span(r.index.unit, e.start, e.end), e.text})
		}
		if !versioned {
			if out.Changes == nil {
				out.Changes = map[string][]textEdit{}
			}
			out.Changes[file.uri] = edits
			continue
		}
		change := documentChange{TextDocument: versionedDocument{URI: file.uri}, Edits: edits}
		if file.document != nil {
			change.TextDocument.Version = &file.document.version
		}
		out.DocumentChanges = append(out.DocumentChanges, change)
	}
	return out
}
