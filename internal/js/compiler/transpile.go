package compiler

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

	"github.com/dop251/goja/ast"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// bodyMarker is the function that receives a lowered script, so that it can be found after the
// output of lowering.
const bodyMarker = "$mcpd$body$"

const (
	loweredStart = bodyMarker + syntax.WrapperStart
	loweredEnd   = "\n}});\n"
)

// maxLowered limits the output of lowering and bundling, in bytes.
const maxLowered = 1 << 20

// transpiled reports whether a text needs a [transpile.Transpiler]. If the program has none, it adds a
// diagnostic.
func (c *compilation) transpiled(f syntax.Features) (needs, ok bool) {
	var at diag.Range
	var what string
	switch {
	case len(f.Modules) > 0:
		at, what = c.src.Text.Range(f.Modules[0].Start, f.Modules[0].End), "import declarations"
	case c.src.Language == source.TS:
		at, what = c.src.Text.Range(0, 0), "TypeScript"
	case f.Lowering:
		at, what = c.src.Text.Range(f.Lowered.Start, f.Lowered.End), "async generators and for await"
	default:
		return false, true
	}
	if c.src.Transpiler == nil {
		c.fail(at, source.MissingExtension, "this program cannot compile "+what,
			"import github.com/mcpd/mcpd/extensions/typescript into the program, and add typescript.New() to engine.Options.Extensions and typescript.Transpiler() to the arguments of worker.Main")
	}
	return true, c.src.Transpiler != nil
}

// lower compiles TypeScript, imports and syntax that the engine lacks. It reports whether it
// succeeded.
func (c *compilation) lower(f syntax.Features) bool {
	if f.Indents > maxLowered {
		c.tooLarge()
		return false
	}
	files := &bundler{compilation: c, entry: c.newWrappedSource(f.Modules)}
	in := transpile.Input{Source: files.entry.src, TypeScript: c.src.Language == source.TS, MaxErrors: maxReports}
	out := transpile.Output{}
	if len(f.Modules) == 0 {
		out = c.src.Transpiler.Transpile(in)
	} else {
		out = files.bundle(in)
	}
	files.hash()
	c.files, c.read = files.files, c.read+files.bytes
	if len(out.Errors) > 0 {
		files.report(out.Errors)
		return false
	}
	if len(out.Code) > maxLowered {
		c.tooLarge()
		return false
	}
	if _, refused := syntax.Check(string(out.Code), false); refused != nil {
		c.fail(c.src.Text.Range(0, 0), "script-syntax", refused.Summary, "the error is in the JavaScript that the script compiles to; "+refused.Detail)
		return false
	}
	return c.lowered(string(out.Code), out.Map, files)
}

func (c *compilation) tooLarge() {
	c.fail(c.src.Text.Range(0, 0), "script-size", "the script and its imports are too large", "compiled, they may have at most 1 MiB")
}

func (c *compilation) lowered(code string, sourceMap []byte, files *bundler) bool {
	c.origin = Origin{src: syntax.WrapperStart + code + wrapperEnd, lowered: true}
	mappings, err := decodeSourceMap(sourceMap, code)
	if err != nil {
		c.fail(c.src.Text.Range(0, 0), "script-internal", "the script could not be compiled", "its source map is damaged: "+err.Error())
		return false
	}
	c.origin.texts, c.origin.mappings = files.resolve(mappings, len(syntax.WrapperStart))
	return true
}

// unwrapModule changes a lowered module so that it returns the result of the script that it passes
// to [bodyMarker]. It returns false for other modules.
func unwrapModule(function *ast.FunctionLiteral) bool {
	block := function.Body.List[0].(*ast.BlockStatement)
	if len(block.List) == 0 {
		return false
	}
	last := &block.List[len(block.List)-1]
	statement, ok := (*last).(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	call, ok := statement.Expression.(*ast.CallExpression)
	if !ok || len(call.ArgumentList) != 1 {
		return false
	}
	callee, ok := call.Callee.(*ast.Identifier)
	body, isFunction := call.ArgumentList[0].(*ast.FunctionLiteral)
	if !ok || !isFunction || callee.Name != bodyMarker {
		return false
	}
	body.Async = awaits(body)
	*last = &ast.ReturnStatement{Return: callee.Idx, Argument: &ast.CallExpression{
		Callee: body, LeftParenthesis: call.LeftParenthesis, RightParenthesis: call.RightParenthesis,
	}}
	return true
}

// wrappedSource is the input of a compiler: the script inside its function, followed by its import
// declarations, which must be at the top level.
type wrappedSource struct {
	src      string
	text     diag.Text
	body     string
	segments []segment
	// imports is the offset of the import declarations in src.
	imports int
}

func (c *compilation) newWrappedSource(modules []syntax.Span) *wrappedSource {
	body := c.text
	w := &wrappedSource{text: c.src.Text, body: body}
	var b strings.Builder
	b.WriteString(loweredStart)
	from := 0
	for _, m := range modules {
		w.copy(&b, from, m.Start)
		b.WriteString(blank(body[m.Start:m.End]))
		from = m.End
	}
	w.copy(&b, from, len(body))
	b.WriteString(c.end + loweredEnd)
	w.imports = b.Len()
	for _, m := range modules {
		w.copy(&b, m.Start, m.End)
		b.WriteString("\n")
	}
	w.src = b.String()
	return w
}

func (w *wrappedSource) copy(b *strings.Builder, from, to int) {
	w.segments = append(w.segments, segment{to: b.Len(), from: from, length: to - from})
	b.WriteString(w.body[from:to])
}

// importsAlone returns src with white space for the script. The import declarations keep their
// positions.
func (w *wrappedSource) importsAlone() string {
	end := w.imports - len(loweredEnd)
	return loweredStart + blank(w.src[len(loweredStart):end]) + w.src[end:]
}

// blank returns white space with the same lines as s.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, s)
}

// offset converts an offset in src to one in the script; ok is false if the author did not write
// it.
func (w *wrappedSource) offset(at int) (int, bool) {
	for _, s := range w.segments {
		if at >= s.to && at <= s.to+s.length {
			return s.from + at - s.to, true
		}
	}
	return 0, false
}

// maxImports limits the total size of all imported files, in bytes.
const maxImports = 256 << 10

var errTooMuch = errors.New("the imported files have more than 256 KiB together")

// bundler loads the files that a script imports.
type bundler struct {
	compilation *compilation
	entry       *wrappedSource

	// guarded by mu while the bundler runs
	mu    sync.Mutex
	files map[string]diag.Text
	bytes int
}

// bundle joins the script and all its imports into one source. After a syntax error in the script,
// the imported files are checked alone.
func (b *bundler) bundle(in transpile.Input) transpile.Output {
	in.Files = b
	transpiler := b.compilation.src.Transpiler
	out := transpiler.Transpile(in)
	if slices.ContainsFunc(out.Errors, func(e transpile.Error) bool { return e.Syntax && e.Location.File == transpile.Entry }) {
		in.Source = b.entry.importsAlone()
		out.Errors = append(out.Errors, transpiler.Transpile(in).Errors...)
	}
	return out
}

// Resolve returns the path of an imported file. name is relative to the importing file.
func (b *bundler) Resolve(importer, name string, declaration bool) (string, error) {
	if !declaration {
		return "", errors.New("only import declarations can load a file")
	}
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		return "", errors.New("packages cannot be imported")
	}
	if importer == transpile.Entry {
		importer = b.compilation.src.Path
	}
	target := path.Join(path.Dir(importer), name)
	if target == ".." || strings.HasPrefix(target, "../") || path.IsAbs(target) {
		return "", errors.New("a file outside of the tools folder cannot be imported")
	}
	return target, nil
}

// Load returns an imported file.
func (b *bundler) Load(name string) (string, transpile.Format, error) {
	format, language, err := formatOf(name)
	if err != nil {
		return "", 0, err
	}
	text, err := b.read(name)
	if err != nil {
		return "", 0, err
	}
	if _, refused := syntax.Check(text.Body(), language == source.TS); refused != nil {
		return "", 0, &transpile.Refused{Diagnostic: refused.Diagnostic(text)}
	}
	return text.Body(), format, nil
}

// formatOf returns the format and the language of a file, by its extension.
func formatOf(name string) (transpile.Format, source.Language, error) {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return transpile.JavaScript, source.JS, nil
	case ".ts", ".mts":
		return transpile.TypeScript, source.TS, nil
	case ".json":
		return transpile.JSON, source.JS, nil
	}
	return 0, 0, errors.New("only .js, .mjs, .ts, .mts and .json files can be imported, with their full name")
}

// read returns the text of an imported file. It stores the text for positions and the hash.
func (b *bundler) read(name string) (diag.Text, error) {
	load := b.compilation.src.Import
	if load == nil {
		return diag.Text{}, errors.New("nothing can be imported here")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, known := b.files[name]; known {
		return text, nil
	}
	if b.bytes > maxImports {
		return diag.Text{}, errTooMuch // without reading it
	}
	data, err := load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Text{}, fmt.Errorf("there is no file %s in the tools folder", name)
	}
	if err != nil {
		return diag.Text{}, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if b.bytes += len(data); b.bytes > maxImports {
		return diag.Text{}, errTooMuch
	}
	text := diag.WholeFile(b.displayPath(name), string(data))
	if b.files == nil {
		b.files = map[string]diag.Text{}
	}
	b.files[name] = text
	return text, nil
}

// displayPath returns the path of an imported file for messages, with the same directory as the
// file of the script.
func (b *bundler) displayPath(name string) string {
	src := b.compilation.src
	if src.Path == "" || !strings.HasSuffix(src.Text.File(), src.Path) {
		return name
	}
	return strings.TrimSuffix(src.Text.File(), src.Path) + name
}

func (b *bundler) hash() {
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		b.compilation.hashPart(name)
		b.compilation.hashPart(b.files[name].Body())
	}
}

// report rejects the script with the errors of the compiler, at the positions of the author: the
// first syntax error of each file, and every wrong import.
func (b *bundler) report(problems []transpile.Error) {
	c := b.compilation
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
		at, ok := b.sourceRange(p.Location)
		if !ok && p.Location != nil {
			list = append(list, c.endsEarly())
			continue
		}
		d := diag.Diagnostic{Code: "script-syntax", Summary: plain(firstLine(p.Text)), Range: at.Range()}
		for _, note := range p.Notes {
			if where, ok := b.sourceRange(note.Location); ok {
				d.Notes = append(d.Notes, diag.Note{Range: where.Range(), Message: plain(note.Text)})
			} else if d.Detail == "" {
				d.Detail = plain(note.Text)
			}
		}
		d.Detail = cmp.Or(d.Detail, c.advise(p.Text, at.Text.Body(), at.Start))
		list = append(list, d)
	}
	c.reject(list...)
}

// sourceRange returns the range of the author for a location of the compiler; ok is false if the
// author did not write it.
func (b *bundler) sourceRange(at *transpile.Location) (sourceRange, bool) {
	if at == nil {
		return sourceRange{Text: b.compilation.src.Text}, false
	}
	if text, ok := b.files[at.File]; ok {
		offset := byteOffset(text.Body(), at)
		return sourceRange{text, offset, offset + max(1, at.Length)}, true
	}
	offset, ok := b.entry.offset(byteOffset(b.entry.src, at))
	return sourceRange{b.entry.text, offset, offset + max(1, at.Length)}, ok && offset < len(b.entry.body)
}

// byteOffset returns the offset of a location: the line from 1, the column in bytes from 0.
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
