// Package hclfile parses and decodes the files of operators and authors: mcpd.hcl and the files
// of the tools directory, in HCL or in its JSON syntax. It is the only package that uses HCL.
//
// [Parse] parses the bytes of a [Source] to a [File], which is immutable and may be cached.
// [JoinLocals] evaluates the locals of one directory. [File.Decode] and [File.DecodeConfig]
// evaluate a file in a [Scope] and return plain data: [definition.Definitions] or a
// [definition.Config]. Input and output blocks become JSON Schemas with the position of each
// part. Code stays text: a [definition.Code] has the position of each byte. [Format] implements
// `mcpd fmt`.
//
// Every error is a diagnostic. All errors of a file are reported at once, in file order.
// [File.Decode] walks the syntax tree by itself, so that the order and the messages do not
// depend on a map or a library.
//
// A file may contain anything. Before HCL's recursive parser runs, a scanner without recursion
// rejects what the parser could not handle. It also removes the text of raw heredocs, which HCL
// would misread. An evaluator with bounded work and bounded values evaluates expressions.
//
// The package compiles no scripts, resolves only references to locals between files, and does
// not access the disk: file() reads through [Scope].ReadFile.
package hclfile

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// File is a parsed file that is not yet evaluated. It is immutable and may be cached by path
// and content.
type File struct {
	path, dir string
	folder    string
	kind      Kind
	source    string
	positions positions
	// skipped are the ranges that HCL did not parse, in order.
	skipped []skippedRange
	// heredocs are the literal heredocs, in order.
	heredocs []heredoc
	// embedded are the strings of a JSON file that were parsed separately.
	embedded []diag.Text
	body     *hclsyntax.Body
	// broken: a block has a syntax error and is missing in body.
	broken bool
	locals []Local
}

// Source is the content of one file.
type Source struct {
	// Path is the name in messages, with forward slashes. If it ends in .json, the file has
	// HCL's JSON syntax.
	Path string
	// RelDir is the directory of the file relative to the tools root, with forward slashes; ""
	// is the root. Paths in the file are relative to it.
	RelDir string
	// AbsDir is the absolute directory of the file on disk, in the notation of the system. It
	// is empty if the file is not on disk.
	AbsDir string
	Bytes  []byte
}

// Kind is the language of a file.
type Kind int

// Local is a declared local value.
type Local struct {
	Name  string
	Range diag.Range
	expr  hclsyntax.Expression
}

const (
	// ConfigKind is the config file, mcpd.hcl.
	ConfigKind Kind = iota
	// ToolsKind is a file in the tools directory.
	ToolsKind
)

// Parse parses a file. It returns no file if the text exceeds a limit, or is JSON with a syntax
// error. In HCL, the file contains the blocks without syntax errors; each other block reports
// its first error.
func Parse(src Source, kind Kind) (_ *File, problems diag.List) {
	f := &File{path: src.Path, dir: src.RelDir, folder: src.AbsDir, kind: kind}
	defer f.reportPanic(&problems)
	if problem := checkBytes(src); problem != nil {
		return nil, diag.List{*problem}
	}
	f.source = string(src.Bytes)
	f.positions = newPositions(f.source)
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

// reportPanic is deferred by the entry points of the package. It reports a panic, which is a
// bug in mcpd and must not stop a server whose file is edited. The panic value is not shown,
// because it may contain text of the file. The diagnostic has the stack trace for the log.
func (f *File) reportPanic(problems *diag.List) {
	if recover() == nil {
		return
	}
	*problems = append(*problems, diag.Diagnostic{
		Severity: diag.Error, Code: codeInternal, Range: diag.Range{File: f.path, Start: diag.Pos{Line: 1, Column: 1}},
		Summary: "mcpd fails on this file because of a bug in mcpd", Detail: "undo the last change, and report the bug with the file",
		Stack: string(debug.Stack()),
	})
}

// codeInternal is the code of a panic.
const codeInternal = "file-internal"

func isJSON(path string) bool { return strings.HasSuffix(path, ".json") }

// checkBytes rejects content that no parser should read.
func checkBytes(src Source) *diag.Diagnostic {
	if len(src.Bytes) > maxFile {
		return &diag.Diagnostic{
			Code: "too-large", Range: diag.Range{File: src.Path},
			Summary: fmt.Sprintf("the file is larger than %d KiB", maxFile>>10),
			Detail:  "split it, or move code and data into files and read them with file()",
		}
	}
	at, summary, detail := invalidUTF8(src.Bytes), "the file is not valid UTF-8", "save it as UTF-8"
	if at < 0 {
		at, summary, detail = bytes.IndexByte(src.Bytes, 0), "the file contains a NUL byte", "save it as UTF-8 text"
	}
	if at >= 0 {
		pos := newPositions(string(src.Bytes[:at])).pos(string(src.Bytes[:at]), at)
		return &diag.Diagnostic{Code: "not-utf8", Range: diag.Range{File: src.Path, Start: pos, End: pos}, Summary: summary, Detail: detail}
	}
	return nil
}

// invalidUTF8 returns the offset of the first invalid byte, or -1.
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

// byteOrderMark may precede a file; it is not part of the language.
const byteOrderMark = "\xef\xbb\xbf"

// parseHCL parses native syntax. HCL gets the source without a byte order mark and without the
// text of literal heredocs.
func (f *File) parseHCL(src []byte) diag.List {
	start := 0
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		start = len(byteOrderMark)
		f.skip(0, start)
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
	if len(text) > MaxHCL {
		return diag.List{tooMuchHCL(f.path)}
	}
	parsed, found := hclsyntax.ParseConfig(text, "", hcl.InitialPos)
	f.body = parsed.Body.(*hclsyntax.Body)
	if first := firstFatal(found); first != nil {
		return f.splitBlocks(start, diag.List{f.syntaxProblem(first)})
	}
	return f.syntaxProblems(found)
}

// withoutHeredocs returns the text for HCL from start, with a line end, and records the skipped
// ranges.
func (f *File) withoutHeredocs(src []byte, start int, heredocs []heredoc) []byte {
	text := make([]byte, 0, len(src)-start+1)
	at := start
	for _, h := range heredocs {
		h.open, h.start, h.end = h.open+start, h.start+start, h.end+start
		h.cut = len(text) + h.open - at
		text = append(text, src[at:h.start]...)
		f.skip(len(text), h.end-h.start)
		f.heredocs = append(f.heredocs, h)
		at = h.end
	}
	return append(append(text, src[at:]...), '\n')
}

// finish sorts diagnostics and truncates them to [maxDiagnostics].
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
		return append(l[:maxDiagnostics:maxDiagnostics], notChecked(l[maxDiagnostics].Range)) // their number is unknown
	}
	return append(l[:maxDiagnostics:maxDiagnostics], diag.Diagnostic{
		Severity: severity, Code: "too-many", Range: diag.Range{File: f.path, Start: l[maxDiagnostics].Range.Start, End: l[maxDiagnostics].Range.End},
		Summary: fmt.Sprintf("%d more errors in this file are not shown", more),
		Detail:  "fix the errors above first",
	})
}

// Locals returns the declared local values, in order.
func (f *File) Locals() []Local { return f.locals }

// Incomplete reports whether a block has a syntax error, so that the file may declare more than
// it returns.
func (f *File) Incomplete() bool { return f.broken }

// markEvery is the distance in bytes between the stored positions of a file. They make it fast
// to find a position in a long line.
const markEvery = 256

// positions converts byte offsets to lines and columns.
type positions []diag.Pos

func newPositions(source string) positions {
	p := make(positions, 1, 1+len(source)/markEvery)
	p[0] = diag.Pos{Line: 1, Column: 1}
	if strings.HasPrefix(source, byteOrderMark) {
		p[0].Column = 0 // the mark has no column
	}
	for at := 0; len(source)-at > markEvery; {
		next := at + markEvery
		for !utf8.RuneStart(source[next]) {
			next--
		}
		p = append(p, diag.Advance(p[len(p)-1], source[at:next]))
		at = next
	}
	return p
}

// pos returns the position of the byte at offset, clamped to the source.
func (p positions) pos(source string, offset int) diag.Pos {
	offset = max(0, min(offset, len(source)))
	i := sort.Search(len(p), func(i int) bool { return p[i].Byte > offset }) - 1
	pos := diag.Advance(p[i], source[p[i].Byte:offset])
	pos.Column = max(1, pos.Column)
	return pos
}

// skippedRange is a range of bytes that HCL did not parse.
type skippedRange struct {
	// at is its offset in the text for HCL.
	at int
	// skipped is the number of bytes skipped so far, including this range.
	skipped int
}

// skip records that size bytes are missing at an offset of the text for HCL.
func (f *File) skip(at, size int) {
	if n := len(f.skipped); n > 0 {
		size += f.skipped[n-1].skipped
	}
	f.skipped = append(f.skipped, skippedRange{at, size})
}

// offset converts an offset in the text for HCL to one in the source.
func (f *File) offset(parsed int) int {
	i := sort.Search(len(f.skipped), func(i int) bool { return f.skipped[i].at > parsed })
	if i > 0 {
		parsed += f.skipped[i-1].skipped
	}
	return min(parsed, len(f.source))
}

func (f *File) pos(offset int) diag.Pos { return f.positions.pos(f.source, offset) }

// span returns the range of the source bytes from start up to end.
func (f *File) span(start, end int) diag.Range {
	return diag.Range{File: f.path, Start: f.pos(start), End: f.pos(max(start, end))}
}

// rng converts a range of HCL.
func (f *File) rng(r hcl.Range) diag.Range {
	if r.Filename != "" {
		if i, err := strconv.Atoi(r.Filename); err == nil && i < len(f.embedded) {
			return f.embedded[i].Range(r.Start.Byte, r.End.Byte)
		}
	}
	return f.span(f.offset(r.Start.Byte), f.offset(r.End.Byte))
}

// Limits of a file. HCL's parser recurses and joins strings pairwise, so everything that nests
// or repeats is limited before it runs.
const (
	// maxFile is in bytes, including raw scripts.
	maxFile = 1 << 20
	// MaxHCL is in bytes, without the text of literal heredocs.
	MaxHCL = 256 << 10
	// maxNesting bounds the open brackets, quotes, heredocs and template sequences.
	maxNesting = 64
	// maxOperators bounds the operators of one expression, along the path from its root. A
	// prefix operator or question mark counts as prefixWeight operators.
	maxOperators = 256
	prefixWeight = 4
	// maxPieces bounds the lines, $ and % signs and sequences of one template.
	maxPieces = 500
	// maxItems bounds the separators of a file, outside of literal heredocs.
	maxItems = 8192
	// maxWords and maxDefinition bound the tokens of a file and of one top-level definition,
	// outside of literal heredocs. HCL's parser takes about a microsecond per token. A long
	// token counts once per wordBytes.
	maxWords      = 128_000
	maxDefinition = 12_000
	wordBytes     = 16
	// memberWords is the weight of an object member in JSON; embeddedWords is the weight of a
	// type or template, in addition to its text.
	memberWords   = 3
	embeddedWords = 4
	// maxSearched bounds the bytes of files with syntax errors that are searched without
	// success for the ends of heredocs and comments.
	maxSearched = 2 << 20
	// maxDefinitions bounds the top-level blocks of a file.
	maxDefinitions = 2000
	// maxNumber bounds a number, in bytes.
	maxNumber = 64
	// fewerDigits is the advice for a longer number.
	fewerDigits = "write at most 17 digits"

	// maxValue bounds one evaluated value, in bytes.
	maxValue = 1 << 20
	// The budget for all expressions of a file is baseWork plus workPerByte for each byte of
	// its HCL. It pays for bytes that expressions read and create, nodeSize for each value, and
	// stepCost for each part. A unit is about 3 ns.
	baseWork    = 5 << 19
	workPerByte = 8
	stepCost    = 128
	// nodeSize is the size of a value without its text.
	nodeSize = 128
	// wideText is the cost of a byte of non-ASCII text, which cty normalizes.
	wideText = 24
	// maxExponent limits numbers to the range of a float64, in powers of two.
	maxExponent = 1100

	// maxTokens bounds the structural characters of JSON.
	maxTokens = 100_000

	// maxDiagnostics bounds the reported diagnostics of one file, out of at most maxCollected.
	maxDiagnostics = 200
	maxCollected   = 4 * maxDiagnostics
	// maxCompared bounds the names compared for suggestions in one file.
	maxCompared = 10_000
)
