package lsp

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// Limits of an index. Files beyond them are not found by name.
const (
	maxIndexed      = 20_000
	maxIndexedTotal = 128 << 20 // bytes of all texts
	maxIndexDepth   = 32
	maxToolFile     = 1 << 20
)

// source is a file of the project, or an open document, with its outline. It is immutable.
type source struct {
	path string
	uri  string
	text string
	kind hclfile.Kind
	*outline
	marks func() marks

	document *document // nil for a file on disk
	// modified and size describe a file on disk.
	modified time.Time
	size     int64
}

// index finds the blocks of a project by name. It has the open documents, and the files on disk.
type index struct {
	unit    encoding
	sources []*source // by path
	// jsonFiles are the paths of the tool files in HCL's JSON syntax.
	jsonFiles []string
}

// index returns the current index. It reads only the files that have changed since the last call.
func (s *session) index() *index {
	s.mu.Lock()
	open, unit, project := maps.Clone(s.documents), s.unit, s.project
	s.mu.Unlock()
	s.indexing.Lock()
	defer s.indexing.Unlock()
	current := map[string]*source{}
	for path, d := range open {
		if strings.HasSuffix(path, ".hcl") {
			current[path] = s.documentSource(d, project)
		}
	}
	size := 0
	add := func(path string, info fs.FileInfo) {
		if current[path] != nil || len(current) >= maxIndexed || !info.Mode().IsRegular() || info.Size() > maxToolFile {
			return
		}
		known := s.sources[path]
		if known == nil || known.document != nil || known.size != info.Size() || !known.modified.Equal(info.ModTime()) {
			known = newSource(path, uriOf(path), readFile(path), project)
			known.modified, known.size = info.ModTime(), info.Size()
		}
		if size += len(known.text); size <= maxIndexedTotal {
			current[path] = known
		}
	}
	if info, err := os.Lstat(project.Config); err == nil {
		add(project.Config, info)
	}
	var jsonFiles []string
	walkTools(project.Tools, func(path string, info fs.FileInfo) {
		if strings.HasSuffix(path, ".json") {
			jsonFiles = append(jsonFiles, path)
			return
		}
		add(path, info)
	})
	s.sources = current
	return &index{unit, slices.SortedFunc(maps.Values(current), func(a, b *source) int { return cmp.Compare(a.path, b.path) }), jsonFiles}
}

// documentSource returns the source of a document. The caller holds indexing.
func (s *session) documentSource(d *document, project *Project) *source {
	if known := s.sources[d.path]; known != nil && known.document == d {
		return known
	}
	created := newSource(d.path, d.uri, d.text, project)
	created.document = d
	return created
}

func newSource(path, uri, text string, project *Project) *source {
	kind := hclfile.ToolsKind
	if path == project.Config {
		kind = hclfile.ConfigKind
	}
	return &source{path: path, uri: uri, text: text, kind: kind, outline: outlineOf(text, kind), marks: sync.OnceValue(func() marks { return marksOf(text) })}
}

// newPlainSource returns a file that is not HCL: its outline is empty.
func newPlainSource(path, uri, text string) *source {
	empty := &outline{root: &block{}, ends: func() lineStarts { return nil }}
	return &source{path: path, uri: uri, text: text, outline: empty, marks: sync.OnceValue(func() marks { return marksOf(text) })}
}

// span converts a range of offsets in the text.
func (s *source) span(e encoding, start, end int) span {
	m := s.marks()
	return span{m.position(e, s.text, start), m.position(e, s.text, max(start, end))}
}

// walkTools calls add for the tool files of a directory. It follows no links.
func walkTools(folder string, add func(path string, info fs.FileInfo)) {
	visited := 0
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		visited++
		switch {
		case visited > 10*maxIndexed:
			return fs.SkipAll
		case err != nil:
			return nil // the diagnostics say why a directory cannot be read
		case path != folder && loader.IsHidden(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
			if strings.Count(path[len(folder):], string(filepath.Separator)) > maxIndexDepth {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".hcl") || strings.HasSuffix(path, ".hcl.json"):
			if info, err := os.Lstat(path); err == nil {
				add(path, info)
			}
		}
		return nil
	})
}

// declared is a block with the source that has it.
type declared struct {
	*source
	*block
}

// declarations returns the top-level blocks of some kinds, in the order of the files.
func (x *index) declarations(kinds ...string) (found []declared) {
	for _, s := range x.sources {
		for _, b := range s.root.blocks {
			if b.allowed && slices.Contains(kinds, b.kind) {
				found = append(found, declared{s, b})
			}
		}
	}
	return found
}

// named returns the top-level blocks of a kind whose name matches a name or pattern.
func (x *index) named(kind, pattern string) (found []declared) {
	for _, d := range x.declarations(kind) {
		if wildcard.Matches(pattern, d.name()) {
			found = append(found, d)
		}
	}
	return found
}

// location returns where a part of a source is.
func (x *index) location(s *source, start, end int) location {
	return location{s.uri, s.span(x.unit, start, end)}
}

// labelLocation returns where the first label of a block is, or its kind.
func (x *index) labelLocation(d declared) location {
	start, end := d.block.nameRange()
	return x.location(d.source, start, end)
}

// nameRange returns the range of the first label, or of the kind if there is none.
func (b *block) nameRange() (start, end int) {
	if len(b.labels) > 0 {
		return b.labels[0].start, b.labels[0].end
	}
	return b.kindStart, b.kindStart + len(b.kind)
}

// literal returns the value of an argument that is a string or a heredoc without templates, or "".
func (s *source) literal(b *block, name string) string {
	a := b.argument(name)
	if a == nil || a.value == a.valueEnd {
		return ""
	}
	value := s.text[a.value:a.valueEnd]
	if len(value) > 1 && value[0] == '"' && strings.HasSuffix(value, `"`) {
		text := value[1 : len(value)-1]
		if strings.ContainsAny(text, "\"\\") || strings.Contains(text, "${") {
			return ""
		}
		return text
	}
	return ""
}

// word returns the source of an argument's value, such as a type, if it is on one line.
func (s *source) word(b *block, name string) string {
	a := b.argument(name)
	if a == nil || strings.Contains(s.text[a.value:a.valueEnd], "\n") {
		return ""
	}
	return s.text[a.value:a.valueEnd]
}

// quoted is a string in quotes in a source; start and end are the bounds of its text.
type quoted struct {
	text       string
	start, end int
}

// strings returns the strings of an argument's value, without those in comments and heredocs.
func (s *source) strings(a *argument) (found []quoted) {
	if a == nil {
		return nil
	}
	for _, t := range s.valueTokens(a) {
		if t.text[0] != '"' {
			continue
		}
		inner := t.end
		if t.end > t.start+1 && s.text[t.end-1] == '"' {
			inner--
		}
		found = append(found, quoted{s.text[t.start+1 : inner], t.start + 1, inner})
	}
	return found
}

// valueTokens splits the value of an argument into tokens. A string or a heredoc is one token.
func (s *source) valueTokens(a *argument) (tokens []token) {
	o := &outliner{text: s.text, at: a.value, top: hclfile.FileGrammar(s.kind), ends: s.ends}
	for o.at < a.valueEnd {
		at := o.at
		kind := signToken
		switch c := s.text[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			o.at++
			continue
		case c == '"':
			kind, o.at = stringToken, o.stringEnd(at)
		case c == '<':
			if end, ok := o.heredocEnd(at); ok {
				kind, o.at = stringToken, end
			} else {
				o.at++
			}
		case o.skipComment():
			kind = commentToken
		case isWordByte(c) && c != '-':
			kind = numberToken
			if isWordStart(c) {
				kind = wordToken
			}
			for o.at < a.valueEnd && isWordByte(s.text[o.at]) {
				o.at++
			}
		default:
			o.at++
		}
		end := min(o.at, a.valueEnd)
		member := kind == wordToken && len(tokens) > 0 && tokens[len(tokens)-1].text == "."
		tokens = append(tokens, token{kind: kind, start: at, end: end, text: s.text[at:end], member: member})
	}
	return tokens
}

// stringsOf returns the texts of the strings of an argument.
func (s *source) stringsOf(b *block, name string) (texts []string) {
	for _, q := range s.strings(b.argument(name)) {
		texts = append(texts, q.text)
	}
	return texts
}
