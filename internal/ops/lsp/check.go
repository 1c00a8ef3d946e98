package lsp

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// checker collects changes, and checks them one after the other. Changes that arrive during a check
// wait for its end and are checked together, so that fast typing costs one check at a time.
type checker struct {
	// wake has a value if a change waits. It is closed at the end.
	wake chan struct{}

	mu      sync.Mutex
	closed  bool
	waiting pending

	// published are the diagnostics that the client shows, by path. Only the goroutine of run uses
	// them.
	published map[string]published
}

// published are the diagnostics of a file that the client shows.
type published struct {
	uri     string
	encoded []byte
}

// pending are changes that wait.
type pending struct {
	Change
	touched map[string]bool // the paths of changed files and documents
}

func newChecker() *checker {
	return &checker{wake: make(chan struct{}, 1), published: map[string]published{}}
}

// add adds a change of a file; "" for no particular one.
func (c *checker) add(path string, change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || path != "" && len(change.Paths) == 0 && !change.Config && !change.All {
		return
	}
	w := &c.waiting
	if w.touched == nil {
		w.touched = map[string]bool{}
	}
	if path != "" {
		w.touched[path] = true
	}
	for _, name := range change.Paths {
		if !slices.Contains(w.Paths, name) {
			w.Paths = append(w.Paths, name)
		}
	}
	w.Config, w.All = w.Config || change.Config, w.All || change.All
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the changes that wait.
func (c *checker) take() pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.waiting
	c.waiting = pending{}
	return taken
}

// run checks changes until close is called.
func (c *checker) run(check func(pending)) {
	for range c.wake {
		check(c.take())
	}
}

// close ends run after its current check.
func (c *checker) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.wake)
	}
}

// check checks the project with the open documents and publishes the diagnostics.
func (s *session) check(p pending) {
	defer func() {
		if recover() != nil {
			s.options.Logger.Error("recover panic in editor check", slog.String("stack", string(debug.Stack())))
		}
	}()
	s.mu.Lock()
	open, project := maps.Clone(s.documents), s.project
	s.mu.Unlock()
	for path := range p.touched {
		if d := open[path]; d != nil {
			s.files.Set(path, []byte(d.text))
		} else {
			s.files.Remove(path)
		}
	}
	s.publish(p, project.Check(p.Change), open)
}

// publish sends the diagnostics of each file that has other ones than before. A file without
// diagnostics gets an empty list.
func (s *session) publish(p pending, problems diag.List, open map[string]*document) {
	v := &view{session: s, open: open, texts: map[string]string{}}
	lists, suggested := map[string][]diagnostic{}, map[string]fixes{}
	for _, problem := range problems {
		path := v.pathFor(problem.Range)
		if path == "" {
			continue
		}
		shown := v.diagnostic(problem, path)
		lists[path] = append(lists[path], shown)
		if d := open[path]; d != nil {
			if f, ok := s.unit.fixOf(d.text, problem, shown); ok {
				suggested[path] = fixes{d.text, append(suggested[path].all, f)}
			}
		}
	}
	s.mu.Lock()
	s.fixes = suggested
	s.mu.Unlock()
	for path := range p.touched {
		if open[path] != nil && lists[path] == nil {
			lists[path] = []diagnostic{}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(lists)) {
		params := publishParams{URI: v.uri(path), Diagnostics: lists[path]}
		encoded, err := json.Marshal(params.Diagnostics)
		if err != nil {
			continue // the types have no values that cannot be encoded
		}
		before, shown := s.checker.published[path]
		if shown && before.uri == params.URI && bytes.Equal(before.encoded, encoded) && !p.touched[path] {
			continue
		}
		if shown && before.uri != params.URI {
			s.clear(before) // first: most clients show both URIs in one file
		}
		if d := open[path]; d != nil {
			params.Version = &d.version
		}
		s.checker.published[path] = published{params.URI, encoded}
		s.notify("textDocument/publishDiagnostics", params)
	}
	for path, before := range s.checker.published {
		if _, found := lists[path]; !found {
			delete(s.checker.published, path)
			s.clear(before)
		}
	}
}

// clear removes diagnostics from the client.
func (s *session) clear(p published) {
	if !bytes.Equal(p.encoded, noDiagnostics) {
		s.notify("textDocument/publishDiagnostics", publishParams{URI: p.uri, Diagnostics: []diagnostic{}})
	}
}

var noDiagnostics = []byte("[]")

// view converts diagnostics for the client, with the texts that were checked.
type view struct {
	session *session
	open    map[string]*document
	texts   map[string]string
}

// pathFor returns the file that shows a diagnostic. A diagnostic of a directory, or without a file,
// is shown in the config file, if there is one.
func (v *view) pathFor(r diag.Range) string {
	if r.File != "" {
		path := filepath.Clean(filepath.FromSlash(r.File))
		if v.open[path] != nil || isFile(path) {
			return path
		}
	}
	if config := v.session.project.Config; v.open[config] != nil || isFile(config) {
		return config
	}
	return ""
}

// isFile reports whether a path, or the target of a link, is a regular file. It opens nothing.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// uri returns the URI of a file: the one that the client wrote, if it did. Two programs may escape
// different characters of one path.
func (v *view) uri(path string) string {
	if d := v.open[path]; d != nil {
		return d.uri
	}
	if shown, found := v.session.checker.published[path]; found {
		return shown.uri
	}
	return uriOf(path)
}

// text returns the text of a file.
func (v *view) text(path string) string {
	if d := v.open[path]; d != nil {
		return d.text
	}
	text, read := v.texts[path]
	if !read {
		text = readFile(path)
		v.texts[path] = text
	}
	return text
}

// rangeOf converts a range in a file. Without a line, it does not read the file.
func (v *view) rangeOf(path string, r diag.Range) span {
	if r.Start.Line == 0 {
		return span{}
	}
	return v.session.unit.rangeOf(v.text(path), r)
}

// readFile returns the text of a regular file, or "" if it cannot be read. The diagnostics say why.
// It follows no link, which may lead out of the project or to the stream of the editor, and opens no
// pipe or device, which may block. Ranges in such a file have lines without characters.
func readFile(path string) string {
	found, err := os.Lstat(path)
	if err != nil || !found.Mode().IsRegular() {
		return ""
	}
	file, err := atomicfile.OpenRegular(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !opened.Mode().IsRegular() || !os.SameFile(found, opened) {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(file, maxDocument))
	if err != nil {
		return ""
	}
	return string(text)
}

// diagnostic converts a diagnostic that is shown in a file.
func (v *view) diagnostic(d diag.Diagnostic, shownIn string) diagnostic {
	out := diagnostic{Severity: severityError, Code: d.Code, Source: "mcpd", Message: d.Summary}
	if d.Severity == diag.Warning {
		out.Severity = severityWarning
	}
	if d.Detail != "" {
		out.Message += "\n" + d.Detail
	}
	if path := filepath.Clean(filepath.FromSlash(d.Range.File)); d.Range.File != "" && path != shownIn {
		out.Message = v.relative(d.Range.File) + ": " + out.Message
	} else {
		out.Range = v.rangeOf(shownIn, d.Range)
	}
	related := v.session.client.Capabilities.TextDocument.PublishDiagnostics.RelatedInformation
	for _, n := range d.Notes {
		if !related || n.Range.File == "" {
			where := n.Range
			if where.File = v.relative(where.File); where.File != "" {
				out.Message += "\n" + where.String() + ": " + n.Message
			} else {
				out.Message += "\n" + n.Message
			}
			continue
		}
		path := filepath.Clean(filepath.FromSlash(n.Range.File))
		out.RelatedInformation = append(out.RelatedInformation, relatedInformation{
			Location: location{v.uri(path), v.rangeOf(path, n.Range)}, Message: n.Message,
		})
	}
	return out
}

// relative returns a name of a file in a diagnostic, below the directory of the project.
func (v *view) relative(name string) string {
	below, err := filepath.Rel(v.session.root, filepath.FromSlash(name))
	if name == "" || err != nil || !filepath.IsLocal(below) {
		return name
	}
	return filepath.ToSlash(below)
}
