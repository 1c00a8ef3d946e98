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

// bundle joins the body and all that it imports into one source.
func (m *modules) bundle() (code, sourceMap []byte, problems []api.Message) {
	options := m.compilation.transformOptions()
	result := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: m.entry.src, Sourcefile: entryPath, Loader: m.compilation.loader()},
		Bundle: true, Write: false, Outfile: "/body.js", AbsWorkingDir: "/",
		Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: options.Target, Supported: options.Supported,
		Sourcemap: options.Sourcemap, SourcesContent: options.SourcesContent, TsconfigRaw: options.TsconfigRaw,
		LogLevel: options.LogLevel, LogLimit: options.LogLimit, Charset: options.Charset, LegalComments: options.LegalComments,
		Plugins: []api.Plugin{{Name: namespace, Setup: m.setup}},
	})
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
	body := m.compilation.patches.of(args.Path, text.Body())
	_, refused := inspect(body, language)
	if refused != nil {
		found := unreadable{refused.diagnostic(text), spot{file: args.Path, at: refused.start, refused: refused}}
		return api.OnLoadResult{Errors: []api.Message{{Text: refused.summary, Detail: found}}}, nil
	}
	return api.OnLoadResult{Contents: &body, Loader: loader}, nil
}

// unreadable is a file that could not be cut into tokens.
type unreadable struct {
	told diag.Diagnostic
	spot spot
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

// report tells the compiler's errors at the places where the author wrote them.
func (m *modules) report(problems []api.Message) {
	c := m.compilation
	for _, p := range problems[:min(len(problems), maxReports)] {
		if found, ok := p.Detail.(unreadable); ok {
			c.mistake(found.told, found.spot)
			continue
		}
		at, spot, ok := m.place(p.Location)
		if !ok && p.Location != nil {
			c.endsEarly()
			continue
		}
		d := diag.Diagnostic{Code: "script-syntax", Summary: plain(strings.ReplaceAll(firstLine(p.Text), `"`+namespace+":", `"`)), Range: at}
		for _, note := range p.Notes {
			if where, _, ok := m.place(note.Location); ok {
				d.Notes = append(d.Notes, diag.Note{Range: where, Message: plain(note.Text)})
			} else if d.Detail == "" {
				d.Detail = plain(note.Text)
			}
		}
		d.Detail = cmp.Or(d.Detail, c.advise(p.Text, spot))
		spot.sure = !stopsParser(p.Text)
		c.mistake(d, spot)
	}
}

// stopsParser reports whether a message is of what the compiler could not read.
func stopsParser(message string) bool {
	return strings.HasPrefix(message, "Expected") || strings.HasPrefix(message, "Unexpected") || strings.HasPrefix(message, "Unterminated")
}

// place returns where the author wrote what the compiler speaks of, and false
// when that is nowhere.
func (m *modules) place(at *api.Location) (diag.Range, spot, bool) {
	if at == nil {
		return m.compilation.src.Text.Range(0, 0), spot{}, false
	}
	name := strings.TrimPrefix(at.File, namespace+":")
	if text, ok := m.files[name]; ok {
		offset := byteOffset(m.compilation.patches.of(name, text.Body()), at)
		return text.Range(offset, offset+max(1, at.Length)), spot{file: name, at: offset}, true
	}
	offset, ok := m.entry.offset(byteOffset(m.entry.src, at))
	return m.entry.text.Range(offset, offset+max(1, at.Length)), spot{at: offset}, ok && offset < len(m.entry.body)
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
