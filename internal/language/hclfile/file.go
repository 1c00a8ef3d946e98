package hclfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Source is the bytes of one file.
type Source struct {
	// Path is how messages name the file, with forward slashes. A path that
	// ends in .json is read as HCL's JSON syntax.
	Path string
	// Dir is the folder of the file relative to the tools root, with forward
	// slashes; "" is the root itself. Paths in the file are relative to it.
	Dir string
	// Folder is the absolute path of the folder of the file on the disk, as the
	// system writes it; empty when the file is not on the disk.
	Folder string
	Bytes  []byte
}

// Kind says which of the two languages a file is written in.
type Kind int

const (
	// ConfigKind is the operator's file, mcpd.hcl.
	ConfigKind Kind = iota
	// ToolsKind is a file in the tools folder.
	ToolsKind
)

// File is a file that parsed and is not yet evaluated. It is immutable and may
// be cached by its path and content.
type File struct {
	path, dir string
	folder    string
	kind      Kind
	source    string
	places    places
	// cuts are what HCL did not parse, in order.
	cuts []cut
	// heredocs are the literal heredocs, in order.
	heredocs []heredoc
	// embedded are the strings of a JSON file that were parsed on their own.
	embedded []diag.Text
	body     *hclsyntax.Body
	// broken: a block has a syntax error, and body does not hold it.
	broken bool
	locals []Local
}

// Local is a declared local value.
type Local struct {
	Name  string
	Range diag.Range
	expr  hclsyntax.Expression
}

// Parse reads a file. It returns no file if the text exceeds a limit, or is JSON
// with a syntax error. A file of HCL holds the blocks without one: each of the
// others reports its first.
func Parse(src Source, kind Kind) (*File, diag.List) {
	f := &File{path: src.Path, dir: src.Dir, folder: src.Folder, kind: kind}
	if problem := checkBytes(src); problem != nil {
		return nil, diag.List{*problem}
	}
	f.source = string(src.Bytes)
	f.places = newPlaces(f.source)
	var problems diag.List
	if isJSON(src.Path) {
		problems = f.parseJSON()
	} else {
		problems = f.parseHCL(src.Bytes)
	}
	problems = f.finish(problems)
	if f.body == nil {
		return nil, problems
	}
	f.locals = f.findLocals()
	return f, problems
}

func isJSON(path string) bool { return strings.HasSuffix(path, ".json") }

// checkBytes refuses what no parser should see.
func checkBytes(src Source) *diag.Diagnostic {
	if len(src.Bytes) > maxFile {
		return &diag.Diagnostic{
			Code: "too-large", Range: diag.Range{File: src.Path},
			Summary: fmt.Sprintf("the file is larger than %d KiB", maxFile>>10),
			Detail:  "split it, or move code and data into files of their own and read them with file()",
		}
	}
	if at := invalidUTF8(src.Bytes); at >= 0 {
		pos := newPlaces(string(src.Bytes[:at])).pos(string(src.Bytes[:at]), at)
		return &diag.Diagnostic{
			Code: "not-utf8", Range: diag.Range{File: src.Path, Start: pos, End: pos},
			Summary: "the file is not valid UTF-8", Detail: "save it in UTF-8",
		}
	}
	if at := bytes.IndexByte(src.Bytes, 0); at >= 0 {
		pos := newPlaces(string(src.Bytes[:at])).pos(string(src.Bytes[:at]), at)
		return &diag.Diagnostic{
			Code: "not-utf8", Range: diag.Range{File: src.Path, Start: pos, End: pos},
			Summary: "the file holds a NUL byte", Detail: "save it as text in UTF-8",
		}
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// byteOrderMark may begin a file; it is not part of the language.
const byteOrderMark = "\xef\xbb\xbf"

// parseHCL parses native syntax. What HCL sees is the source without a byte
// order mark and without the text of literal heredocs.
func (f *File) parseHCL(src []byte) diag.List {
	start := 0
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		start = len(byteOrderMark)
		f.addCut(0, start)
	}
	heredocs, problem := scan(src[start:])
	if problem != nil {
		found := diag.List{{
			Code: problem.code, Summary: problem.summary, Detail: problem.detail,
			Range: f.span(start+problem.start, start+problem.end),
		}}
		if problem.code != "syntax" {
			return found
		}
		return f.splitBlocks(start, found)
	}
	text := f.withoutHeredocs(src, start, heredocs)
	if len(text) > maxHCL {
		return diag.List{tooMuchHCL(f.path)}
	}
	parsed, found := hclsyntax.ParseConfig(text, "", hcl.InitialPos)
	f.body = parsed.Body.(*hclsyntax.Body)
	if first := firstFatal(found); first != nil {
		return f.splitBlocks(start, diag.List{f.syntaxProblem(first)})
	}
	return f.syntaxProblems(found)
}

// withoutHeredocs returns what HCL sees of src from start on, a line end at its
// end, and remembers what it does not see.
func (f *File) withoutHeredocs(src []byte, start int, heredocs []heredoc) []byte {
	text := make([]byte, 0, len(src)-start+1)
	at := start
	for _, h := range heredocs {
		h.open, h.start, h.end = h.open+start, h.start+start, h.end+start
		h.cut = len(text) + h.open - at
		text = append(text, src[at:h.start]...)
		f.addCut(len(text), h.end-h.start)
		f.heredocs = append(f.heredocs, h)
		at = h.end
	}
	return append(append(text, src[at:]...), '\n')
}

// finish sorts what was found and cuts it to [maxDiagnostics].
func (f *File) finish(l diag.List) diag.List {
	l = l.Sort()
	if len(l) <= maxDiagnostics {
		return l
	}
	more := len(l) - maxDiagnostics
	severity := diag.Warning
	if l[maxDiagnostics:].HasErrors() {
		severity = diag.Error
	}
	if slices.ContainsFunc(l[maxDiagnostics:], func(d diag.Diagnostic) bool { return d.Code == "too-many" }) {
		return append(l[:maxDiagnostics:maxDiagnostics], notChecked(l[maxDiagnostics].Range)) // nobody counted them
	}
	return append(l[:maxDiagnostics:maxDiagnostics], diag.Diagnostic{
		Severity: severity, Code: "too-many", Range: diag.Range{File: f.path, Start: l[maxDiagnostics].Range.Start, End: l[maxDiagnostics].Range.End},
		Summary: fmt.Sprintf("%d further mistakes in this file are not shown", more),
		Detail:  "fix the errors above first",
	})
}

// Locals returns the local values that the file declares, in order.
func (f *File) Locals() []Local { return f.locals }

// Incomplete reports whether the file may declare more than it returns, because a
// block has a syntax error.
func (f *File) Incomplete() bool { return f.broken }
