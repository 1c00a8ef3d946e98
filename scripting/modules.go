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

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mcpd/mcpd/diag"
)

// maxImports bounds the bytes of all files that a body imports.
const maxImports = 256 << 10

var errTooMuch = errors.New("the imported files have more than 256 KiB together")

// namespace marks the paths that only [Source.Import] can read, so that the
// bundler never looks at a disk.
const namespace = "tools"

// entryPath stands for the body itself, which is no file to import.
const entryPath = "<body>"

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
func (m *modules) bundle() (code, sourceMap []byte, problems []api.Message) {
	result := m.build(m.entry.src)
	if slices.ContainsFunc(result.Errors, func(p api.Message) bool { return isSyntax(p) && p.Location.File == entryPath }) {
		return nil, nil, append(result.Errors, m.build(m.entry.importsAlone()).Errors...)
	}
	if len(result.Errors) > 0 {
		return nil, nil, result.Errors
	}
	for _, file := range result.OutputFiles {
		if strings.HasSuffix(file.Path, ".map") {
			sourceMap = file.Contents
		} else {
			code = file.Contents
		}
	}
	return code, sourceMap, nil
}

func (m *modules) build(src string) api.BuildResult {
	options := m.compilation.transformOptions()
	return api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: src, Sourcefile: entryPath, Loader: m.compilation.loader()},
		Bundle: true, Write: false, Outfile: "/body.js", AbsWorkingDir: "/",
		Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: options.Target, Supported: options.Supported,
		Sourcemap: options.Sourcemap, SourcesContent: options.SourcesContent, TsconfigRaw: options.TsconfigRaw,
		LogLevel: options.LogLevel, LogLimit: options.LogLimit, Charset: options.Charset, LegalComments: options.LegalComments,
		Plugins: []api.Plugin{{Name: namespace, Setup: m.setup}},
	})
}

// isSyntax reports whether a message is of the parser, and not of an import that
// cannot be resolved.
func isSyntax(p api.Message) bool {
	return p.Location != nil && p.PluginName == "" && !strings.HasPrefix(p.Text, "No matching export")
}

func (m *modules) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, m.resolvePath)
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, m.load)
}

// resolvePath finds the file that an import names, from the file that it stands in.
func (m *modules) resolvePath(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if args.Kind != api.ResolveJSImportStatement {
		return api.OnResolveResult{}, errors.New("only import declarations can load a file")
	}
	if !strings.HasPrefix(args.Path, "./") && !strings.HasPrefix(args.Path, "../") {
		return api.OnResolveResult{}, errors.New("packages cannot be imported")
	}
	from := args.Importer
	if from == entryPath {
		from = m.compilation.src.Path
	}
	target := path.Join(path.Dir(from), args.Path)
	if target == ".." || strings.HasPrefix(target, "../") || path.IsAbs(target) {
		return api.OnResolveResult{}, errors.New("a file outside of the tools folder cannot be imported")
	}
	return api.OnResolveResult{Path: target, Namespace: namespace}, nil
}

func (m *modules) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	loader, language, err := loaderOf(args.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	text, err := m.read(args.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	body := text.Body()
	if _, refused := inspect(body, language); refused != nil {
		return api.OnLoadResult{Errors: []api.Message{{Text: refused.summary, Detail: refused.diagnostic(text)}}}, nil
	}
	return api.OnLoadResult{Contents: &body, Loader: loader}, nil
}

// loaderOf returns how a file is compiled, by the end of its name.
func loaderOf(name string) (api.Loader, Language, error) {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return api.LoaderJS, JS, nil
	case ".ts", ".mts":
		return api.LoaderTS, TS, nil
	case ".json":
		return api.LoaderJSON, JS, nil
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
func (m *modules) report(problems []api.Message) {
	c := m.compilation
	var list diag.List
	reported := map[string]bool{}
	for _, p := range problems[:min(len(problems), maxReports)] {
		if refused, ok := p.Detail.(diag.Diagnostic); ok {
			list = append(list, refused)
			continue
		}
		if isSyntax(p) {
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
		d := diag.Diagnostic{Code: "script-syntax", Summary: plain(strings.ReplaceAll(firstLine(p.Text), `"`+namespace+":", `"`)), Range: at.Range()}
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
func (m *modules) place(at *api.Location) (place, bool) {
	if at == nil {
		return place{text: m.compilation.src.Text}, false
	}
	if text, ok := m.files[strings.TrimPrefix(at.File, namespace+":")]; ok {
		offset := byteOffset(text.Body(), at)
		return place{text, offset, offset + max(1, at.Length)}, true
	}
	offset, ok := m.entry.offset(byteOffset(m.entry.src, at))
	return place{m.entry.text, offset, offset + max(1, at.Length)}, ok && offset < len(m.entry.body)
}

// byteOffset returns the offset of a place that is told as a line from 1 and a
// column in bytes from 0.
func byteOffset(s string, at *api.Location) int {
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
