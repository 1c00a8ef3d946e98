package scripting

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// maxImports bounds the bytes of all files that a body imports.
const maxImports = 256 << 10

var errTooMuch = errors.New("the imported files have more than 256 KiB together")

// modules are the files that a body imports.
type modules struct {
	compilation *compilation
	entry       *entry

	// guarded by mu while the bundler runs
	mu    sync.Mutex
	files map[string]diag.Text
	bytes int
}

// bundle joins the body and all that it imports into one source. Behind a syntax
// error in the body the imported files are checked alone.
func (m *modules) bundle(in transpile.Input) transpile.Output {
	in.Files = m
	transpiler := m.compilation.src.Transpiler
	out := transpiler.Transpile(in)
	if slices.ContainsFunc(out.Errors, func(e transpile.Error) bool { return e.Syntax && e.Location.File == transpile.Entry }) {
		in.Source = m.entry.importsAlone()
		out.Errors = append(out.Errors, transpiler.Transpile(in).Errors...)
	}
	return out
}

// Resolve finds the file that an import names, from the file that it stands in.
func (m *modules) Resolve(importer, name string, declaration bool) (string, error) {
	if !declaration {
		return "", errors.New("only import declarations can load a file")
	}
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		return "", errors.New("packages cannot be imported")
	}
	if importer == transpile.Entry {
		importer = m.compilation.src.Path
	}
	target := path.Join(path.Dir(importer), name)
	if target == ".." || strings.HasPrefix(target, "../") || path.IsAbs(target) {
		return "", errors.New("a file outside of the tools folder cannot be imported")
	}
	return target, nil
}

// Load returns a file that is imported.
func (m *modules) Load(name string) (string, transpile.Format, error) {
	format, language, err := formatOf(name)
	if err != nil {
		return "", 0, err
	}
	text, err := m.read(name)
	if err != nil {
		return "", 0, err
	}
	if _, refused := inspect(text.Body(), language); refused != nil {
		return "", 0, &transpile.Refused{Diagnostic: refused.diagnostic(text)}
	}
	return text.Body(), format, nil
}

// formatOf returns how a file is compiled, by the end of its name.
func formatOf(name string) (transpile.Format, Language, error) {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return transpile.JavaScript, JS, nil
	case ".ts", ".mts":
		return transpile.TypeScript, TS, nil
	case ".json":
		return transpile.JSON, JS, nil
	}
	return 0, 0, errors.New("only .js, .mjs, .ts, .mts and .json files can be imported, with their full name")
}

// read returns the text of an imported file and keeps it for positions and the hash.
func (m *modules) read(name string) (diag.Text, error) {
	load := m.compilation.src.Import
	if load == nil {
		return diag.Text{}, errors.New("nothing can be imported here")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, known := m.files[name]; known {
		return text, nil
	}
	if m.bytes > maxImports {
		return diag.Text{}, errTooMuch // without reading it
	}
	data, err := load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Text{}, fmt.Errorf("there is no file %s in the tools folder", name)
	}
	if err != nil {
		return diag.Text{}, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if m.bytes += len(data); m.bytes > maxImports {
		return diag.Text{}, errTooMuch
	}
	text := diag.WholeFile(m.shown(name), string(data))
	if m.files == nil {
		m.files = map[string]diag.Text{}
	}
	m.files[name] = text
	return text, nil
}

// shown returns the path of an imported file as the reader names it: with the
// same folder in front that the body's own file has.
func (m *modules) shown(name string) string {
	src := m.compilation.src
	if src.Path == "" || !strings.HasSuffix(src.Text.File(), src.Path) {
		return name
	}
	return strings.TrimSuffix(src.Text.File(), src.Path) + name
}

// hash adds the imported files to the program's hash.
func (m *modules) hash() {
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		m.compilation.hashPart(name)
		m.compilation.hashPart(m.files[name].Body())
	}
}

// report rejects the body for the compiler's errors, at the places where the
// author wrote them: the first syntax error of each file, and every import that
// is wrong.
func (m *modules) report(problems []transpile.Error) {
	c := m.compilation
	var list diag.List
	reported := map[string]bool{}
	for _, p := range problems[:min(len(problems), maxReports)] {
		if p.Refused != nil {
			list = append(list, *p.Refused)
			continue
		}
		if p.Syntax {
			if reported[p.Location.File] {
				continue
			}
			reported[p.Location.File] = true
		}
		at, ok := m.place(p.Location)
		if !ok && p.Location != nil {
			list = append(list, c.endsEarly())
			continue
		}
		d := diag.Diagnostic{Code: "script-syntax", Summary: plain(firstLine(p.Text)), Range: at.Range()}
		for _, note := range p.Notes {
			if where, ok := m.place(note.Location); ok {
				d.Notes = append(d.Notes, diag.Note{Range: where.Range(), Message: plain(note.Text)})
			} else if d.Detail == "" {
				d.Detail = plain(note.Text)
			}
		}
		d.Detail = cmp.Or(d.Detail, c.advise(p.Text, at.text.Body(), at.start))
		list = append(list, d)
	}
	c.reject(list...)
}

// place returns where the author wrote what a location of the compiler means,
// and false if the author did not write it.
func (m *modules) place(at *transpile.Location) (place, bool) {
	if at == nil {
		return place{text: m.compilation.src.Text}, false
	}
	if text, ok := m.files[at.File]; ok {
		offset := byteOffset(text.Body(), at)
		return place{text, offset, offset + max(1, at.Length)}, true
	}
	offset, ok := m.entry.offset(byteOffset(m.entry.src, at))
	return place{m.entry.text, offset, offset + max(1, at.Length)}, ok && offset < len(m.entry.body)
}

// byteOffset returns the offset of a place that is told as a line from 1 and a
// column in bytes from 0.
func byteOffset(s string, at *transpile.Location) int {
	starts := lineStarts(s)
	if at.Line < 1 || at.Line > len(starts) {
		return len(s)
	}
	return min(starts[at.Line-1]+at.Column, len(s))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
