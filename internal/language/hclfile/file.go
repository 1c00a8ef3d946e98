// Package hclfile reads the files that people write: mcpd.hcl and the files of
// the tools folder, in HCL or in HCL's JSON syntax. It is the only package that
// knows HCL.
//
// [Parse] turns the bytes of a [Source] into a [File], which is immutable and
// may be cached. [JoinLocals] evaluates the locals of one folder; [File.Decode]
// and [File.DecodeConfig] evaluate a file in a [Scope] and return plain data:
// [definition.Definitions] or a [definition.Config]. Input and output blocks become JSON Schemas, each
// part of which is mapped to its place in the file. Code stays text: a [definition.Body]
// knows the place of each of its bytes. [Format] is `mcpd fmt`.
//
// Every mistake is a diagnostic, and all mistakes of a file are told at once,
// in the order of the file. [File.Decode] walks the syntax tree by hand, so
// that their order and wording do not depend on a map or on a library.
//
// A file may be anything. Before HCL's recursive parser runs, a scanner without
// recursion refuses what it could not survive, and cuts out the text of raw
// heredocs, which HCL would misread. Expressions are computed by an evaluator
// that bounds the work of each file and the size of each value.
//
// The package compiles no code, checks no reference between files beside
// locals, and does not touch the disk: what file() reads comes through
// [Scope].ReadFile.
package hclfile

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// File is a file that parsed and is not yet evaluated. It is immutable and may
// be cached by its path and content.
type File struct {
	path, dir string
	folder    string
	kind      Kind
	source    string
	positions positions
	// cuts are what HCL did not parse, in order.
	skipped []skippedRange
	// heredocs are the literal heredocs, in order.
	heredocs []heredoc
	// embedded are the strings of a JSON file that were parsed on their own.
	embedded []diag.Text
	body     *hclsyntax.Body
	// broken: a block has a syntax error, and body does not hold it.
	broken bool
	locals []Local
}

// Source is the bytes of one file.
type Source struct {
	// Path is how messages name the file, with forward slashes. A path that
	// ends in .json is read as HCL's JSON syntax.
	Path string
	// Dir is the folder of the file relative to the tools root, with forward
	// slashes; "" is the root itself. Paths in the file are relative to it.
	RelDir string
	// Folder is the absolute path of the folder of the file on the disk, as the
	// system writes it; empty when the file is not on the disk.
	AbsDir string
	Bytes  []byte
}

// Kind says which of the two languages a file is written in.
type Kind int

// Local is a declared local value.
type Local struct {
	Name  string
	Range diag.Range
	expr  hclsyntax.Expression
}

const (
	// ConfigKind is the operator's file, mcpd.hcl.
	ConfigKind Kind = iota
	// ToolsKind is a file in the tools folder.
	ToolsKind
)

// Parse reads a file. It returns no file if the text exceeds a limit, or is JSON
// with a syntax error. A file of HCL holds the blocks without one: each of the
// others reports its first.
func Parse(src Source, kind Kind) (_ *File, problems diag.List) {
	f := &File{path: src.Path, dir: src.RelDir, folder: src.AbsDir, kind: kind}
	defer f.reportPanic(&problems)
	if problem := checkBytes(src); problem != nil {
		return nil, diag.List{*problem}
	}
	f.source = string(src.Bytes)
	f.positions = newPlaces(f.source)
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

// reportPanic is deferred by what reads a file. It reports a panic, which is a mistake in mcpd
// and must not end a server whose file is edited. What the panic says may hold text of the file.
func (f *File) reportPanic(problems *diag.List) {
	if recover() == nil {
		return
	}
	*problems = append(*problems, diag.Diagnostic{
		Severity: diag.Error, Code: codeInternal, Range: diag.Range{File: f.path, Start: diag.Pos{Line: 1, Column: 1}},
		Summary: "mcpd fails on this file, which is a mistake in mcpd", Detail: "undo the last change to the file, and report it with the file to the makers of mcpd",
	})
}

// codeInternal is the code of a panic.
const codeInternal = "file-internal"

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
	at, summary, detail := invalidUTF8(src.Bytes), "the file is not valid UTF-8", "save it in UTF-8"
	if at < 0 {
		at, summary, detail = bytes.IndexByte(src.Bytes, 0), "the file holds a NUL byte", "save it as text in UTF-8"
	}
	if at >= 0 {
		pos := newPlaces(string(src.Bytes[:at])).pos(string(src.Bytes[:at]), at)
		return &diag.Diagnostic{Code: "not-utf8", Range: diag.Range{File: src.Path, Start: pos, End: pos}, Summary: summary, Detail: detail}
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
		f.skip(len(text), h.end-h.start)
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

// markEvery is the distance in bytes between the known places of a file, so
// that the place of any byte is found without reading a long line from its start.
const markEvery = 256

// places finds lines and columns of byte offsets.
type positions []diag.Pos

func newPlaces(source string) positions {
	p := make(positions, 1, 1+len(source)/markEvery)
	p[0] = diag.Pos{Line: 1, Column: 1}
	if strings.HasPrefix(source, byteOrderMark) {
		p[0].Column = 0 // the mark takes no column
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

// pos returns the place of the byte at offset, which is moved into the source
// when it lies outside.
func (p positions) pos(source string, offset int) diag.Pos {
	offset = max(0, min(offset, len(source)))
	i := sort.Search(len(p), func(i int) bool { return p[i].Byte > offset }) - 1
	pos := diag.Advance(p[i], source[p[i].Byte:offset])
	pos.Column = max(1, pos.Column)
	return pos
}

// cut is a run of bytes that HCL did not parse.
type skippedRange struct {
	// at is the offset of the cut in what HCL parsed.
	at int
	// skipped is how many bytes were cut here and before.
	skipped int
}

// addCut notes that size bytes are missing at an offset of what HCL parses.
func (f *File) skip(at, size int) {
	if n := len(f.skipped); n > 0 {
		size += f.skipped[n-1].skipped
	}
	f.skipped = append(f.skipped, skippedRange{at, size})
}

// offset translates an offset in what HCL parsed to one in the source.
func (f *File) offset(parsed int) int {
	i := sort.Search(len(f.skipped), func(i int) bool { return f.skipped[i].at > parsed })
	if i > 0 {
		parsed += f.skipped[i-1].skipped
	}
	return min(parsed, len(f.source))
}

func (f *File) pos(offset int) diag.Pos { return f.positions.pos(f.source, offset) }

// span returns the range of the bytes of the source from start up to end.
func (f *File) span(start, end int) diag.Range {
	return diag.Range{File: f.path, Start: f.pos(start), End: f.pos(max(start, end))}
}

// rng translates a range of HCL's.
func (f *File) rng(r hcl.Range) diag.Range {
	if r.Filename != "" {
		if i, err := strconv.Atoi(r.Filename); err == nil && i < len(f.embedded) {
			return f.embedded[i].Range(r.Start.Byte, r.End.Byte)
		}
	}
	return f.span(f.offset(r.Start.Byte), f.offset(r.End.Byte))
}

// What a file may hold. HCL's parser recurses and joins strings pairwise, so
// every construct that nests or repeats there is bounded before it runs.
const (
	// maxFile is in bytes, raw bodies included.
	maxFile = 1 << 20
	// maxHCL is in bytes, without the text of literal heredocs.
	maxHCL = 256 << 10
	// maxNesting is how many brackets, quotes, heredocs and template sequences
	// may be open at once.
	maxNesting = 64
	// maxOperators is how many operators one expression may hold, counted
	// along the path from its root; a prefix operator or a question mark
	// counts as prefixWeight of them.
	maxOperators = 256
	prefixWeight = 4
	// maxPieces is how many lines, $ and % signs and sequences one template may hold.
	maxPieces = 500
	// maxItems is how many separators a file may hold, outside of literal heredocs.
	maxItems = 8192
	// maxWords and maxDefinition are how many tokens a file and one definition
	// at its top may hold, outside of literal heredocs; HCL's parser takes about
	// a microsecond for each. Long tokens count once for each wordBytes.
	maxWords      = 128_000
	maxDefinition = 12_000
	wordBytes     = 16
	// memberWords is what a member of an object in JSON counts, embeddedWords
	// a type or a template beside its text.
	memberWords   = 3
	embeddedWords = 4
	// maxSearched is how many bytes of a file with syntax errors are searched in
	// vain for the ends of heredocs and comments.
	maxSearched = 2 << 20
	// maxDefinitions is how many blocks may stand at the top of a file.
	maxDefinitions = 2000
	// maxNumber is the length of a number in bytes.
	maxNumber = 64
	// fewerDigits is what to do about a longer one.
	fewerDigits = "write fewer digits; a number keeps 17 of them at most"

	// maxValue is the size of one evaluated value.
	maxValue = 1 << 20
	// baseWork is the cost of all expressions of one file, beside workPerByte
	// for each byte of its HCL: the bytes they make and go through, nodeSize for
	// each value, and stepCost for each of their parts. A unit is some 3 ns.
	baseWork    = 5 << 19
	workPerByte = 8
	stepCost    = 128
	// nodeSize is what every value counts beside its text.
	nodeSize = 128
	// wideText is the cost of a byte of text that is not ASCII, which cty normalizes.
	wideText = 24
	// maxExponent bounds numbers to the range of a float64, in powers of two.
	maxExponent = 1100

	// maxTokens is how many structural characters JSON may hold.
	maxTokens = 100_000

	// maxDiagnostics is how many mistakes of one file are told, of the first
	// maxCollected that are found.
	maxDiagnostics = 200
	maxCollected   = 4 * maxDiagnostics
	// maxCompared is how many names the suggestions of one file may go through.
	maxCompared = 10_000
)
