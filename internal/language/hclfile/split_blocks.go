package hclfile

import (
	"bytes"
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// splitter parses a file with a syntax error block by block, so that each block
// reports its first syntax error and the other blocks are still checked. Every
// byte is scanned once, and parsed by HCL once.
type splitter struct {
	scanner
	f        *File
	problems diag.List
	// parsed is the length of what HCL was given so far.
	parsed int
	// searched counts the bytes that were searched in vain for the end of a
	// heredoc or a comment.
	searched int
	// stopped says that the rest of the file is not checked.
	stopped bool
}

// splitBlocks parses the source from start on, block by block. found is what
// the scanner or HCL reported of the source as a whole.
func (f *File) splitBlocks(start int, found diag.List) diag.List {
	f.broken, f.skipped, f.heredocs = true, nil, nil
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	s := &splitter{f: f, scanner: scanner{src: []byte(f.source), at: start, levels: make([]level, 1, 16)}}
	for s.at < len(s.src) && !s.stopped {
		s.block(body)
	}
	s.place(0)
	body.SrcRange = hcl.Range{Start: hcl.Pos{Byte: s.parsed}, End: hcl.Pos{Byte: s.parsed + len(s.src)}}
	f.body = body
	if !s.problems.HasErrors() {
		return append(s.problems, found[0])
	}
	return s.problems
}

// block parses from the current offset up to the next heading at the top of
// the file, and adds what it holds to body.
func (s *splitter) block(body *hclsyntax.Body) {
	from, indent := s.at, -1
	s.levels, s.heredocs = append(s.levels[:0], level{}), nil
	s.operand, s.newline, s.size.definition, s.size.began = false, false, 0, -1
	for s.at < len(s.src) && s.problem == nil {
		if s.top().kind != '"' && s.top().kind != '<' && isWord(s.src[s.at]) && (indent < 0 || s.newline) {
			column := s.at - s.lineStartOf(s.at)
			if indent >= 0 && s.splitsAt(column, indent) {
				break
			}
			if indent < 0 {
				indent = column
			}
		}
		s.step()
	}
	if s.problem == nil {
		s.parsePart(body, from, s.at)
		return
	}
	problem := s.problem
	s.problem = nil
	to, open, balanced := s.openBefore(problem.start)
	if balanced && open == "" {
		s.parsePart(body, from, to) // what stands before it is complete
	}
	if open == "" || !balanced || !s.failBefore(from, to, open) {
		s.problems = append(s.problems, diag.Diagnostic{Code: problem.code, Range: s.f.span(problem.start, problem.end), Summary: problem.summary, Detail: problem.detail})
	}
	if problem.code != "syntax" {
		s.stopped = true
		return
	}
	if rest := s.src[problem.start:]; bytes.HasPrefix(rest, []byte("<")) || bytes.HasPrefix(rest, []byte("/")) {
		s.searched += len(s.src) - problem.start
	}
	s.at = s.nextHeading(problem.start, max(indent, 0))
	s.checkBudget()
}

// lineStartOf returns the offset at which the line of an offset begins.
func (s *splitter) lineStartOf(at int) int { return bytes.LastIndexByte(s.src[:at], '\n') + 1 }

// splitsAt reports whether a block at the top of the file begins at the current
// offset, the first word of a line. Outside of brackets its heading may have an
// error; within brackets, whose end is missing then, only the heading of a known
// block begins one, indented no more than the last.
func (s *splitter) splitsAt(column, indent int) bool {
	name, labels, ok := heading(s.src[s.at:])
	if len(s.levels) == 1 {
		rest := bytes.TrimLeft(s.src[s.at+len(name):], " \t")
		return ok || fileRules[s.f.kind].hasBlock(name) && !bytes.HasPrefix(rest, []byte("="))
	}
	return ok && column <= indent && s.isTop(name, labels)
}

// isTop reports whether a block with so many labels may stand at the top of the file.
func (s *splitter) isTop(name string, labels int) bool {
	top := fileRules[s.f.kind]
	return top.hasBlock(name) && len(top.block(name).labels) == labels
}

// nextHeading returns the offset of the next line that begins a known block and
// is indented no more than indent.
func (s *splitter) nextHeading(at, indent int) int {
	for at += lineLength(s.src[at:]); at < len(s.src); at += lineLength(s.src[at:]) {
		line := s.src[at : at+lineLength(s.src[at:])]
		text := bytes.TrimSpace(line)
		column := bytes.Index(line, text)
		name, labels, ok := heading(text)
		if column > indent || !ok && (!bytes.HasSuffix(text, []byte("{")) || bytes.ContainsAny(text, "=(")) {
			continue
		}
		if top := fileRules[s.f.kind]; top.hasBlock(name) && (!ok || s.isTop(name, labels)) {
			return at + column
		}
	}
	return len(s.src)
}

// lineLength returns the length of the line that src begins with, its end included.
func lineLength(src []byte) int {
	if i := bytes.IndexByte(src, '\n'); i >= 0 {
		return i + 1
	}
	return len(src)
}

// heading reads the word that a line begins with. It reports whether that is the
// type of a block, with so many labels and a brace behind it.
func heading(src []byte) (name string, labels int, ok bool) {
	line := src[:lineLength(src)]
	word := asciiWord(line)
	for rest := line[len(word):]; ; labels++ {
		rest = bytes.TrimLeft(rest, " \t")
		label := len(asciiWord(rest))
		if bytes.HasPrefix(rest, []byte(`"`)) {
			label = bytes.IndexByte(rest[1:], '"') + 2
			if label < 2 {
				return string(word), labels, false
			}
		}
		if label == 0 {
			return string(word), labels, len(word) > 0 && bytes.HasPrefix(rest, []byte("{"))
		}
		rest = rest[label:]
	}
}

// parsePart has HCL parse a part of the source. It adds what stands there to
// body, or reports the first syntax error.
func (s *splitter) parsePart(body *hclsyntax.Body, from, to int) {
	if s.parsed+to-from > 2*maxHCL+s.heredocBytes() {
		s.problems = append(s.problems, tooMuchHCL(s.f.path))
		s.stopped = true
		return
	}
	to = from + len(bytes.TrimRight(s.src[from:max(from, to)], " \t\r\n"))
	part, found := s.parse(from, to, "\n")
	if first := firstFatal(found); first != nil {
		end := s.parsed - 1 // what HCL finds behind the end of the part is told there
		first.Subject.Start.Byte, first.Subject.End.Byte = min(first.Subject.Start.Byte, end), min(first.Subject.End.Byte, end)
		s.problems = append(s.problems, s.f.syntaxProblem(first))
		s.checkBudget()
		return
	}
	s.f.body = part
	s.problems = append(s.problems, s.f.syntaxProblems(found)...)
	for name, attr := range part.Attributes {
		if body.Attributes[name] == nil {
			body.Attributes[name] = attr
		}
	}
	body.Blocks = append(body.Blocks, part.Blocks...)
}

// openBefore returns where the line of an offset begins, and what closes the
// brackets that are open there. It reports false when a template is open.
func (s *splitter) openBefore(at int) (line int, closing string, balanced bool) {
	line = s.lineStartOf(at)
	for i := len(s.levels) - 1; i > 0; i-- {
		if s.levels[i].at >= line {
			continue
		}
		end, isBracket := map[byte]string{'(': ")", '[': "]", '{': "}"}[s.levels[i].kind]
		if !isBracket {
			return line, "", false
		}
		closing += "\n" + end
	}
	return line, closing, true
}

// failBefore reports the first syntax error in a part of the source, which is
// complete with what closes it, false when there is none.
func (s *splitter) failBefore(from, to int, closing string) bool {
	if s.parsed+to-from > 2*maxHCL+s.heredocBytes() {
		return false
	}
	_, found := s.parse(from, to, closing+"\n")
	first := firstFatal(found)
	if first == nil || s.f.offset(first.Subject.Start.Byte) >= to-1 {
		return false
	}
	s.problems = append(s.problems, s.f.syntaxProblem(first))
	return true
}

// heredocBytes is the length of the heredocs of the current block, which HCL is not given.
func (s *splitter) heredocBytes() (n int) {
	for _, h := range s.heredocs {
		n += h.end - h.start
	}
	return n
}

// parse has HCL parse a part of the source without the text of its heredocs,
// and tail behind it.
func (s *splitter) parse(from, to int, tail string) (*hclsyntax.Body, hcl.Diagnostics) {
	start := s.parsed
	s.place(from)
	text := make([]byte, 0, to-from+len(tail))
	at := from
	for _, h := range s.heredocs {
		h.cut = start + len(text) + h.open - at
		text = append(text, s.src[at:h.start]...)
		s.parsed = start + len(text)
		s.place(h.end)
		s.f.heredocs = append(s.f.heredocs, h)
		at = h.end
	}
	text = append(append(text, s.src[at:to]...), tail...)
	s.parsed = start + len(text)
	parsed, found := hclsyntax.ParseConfig(text, "", hcl.Pos{Byte: start, Line: 1, Column: 1})
	return parsed.Body.(*hclsyntax.Body), found
}

// place says that what HCL is given next stands at an offset of the source.
func (s *splitter) place(offset int) {
	s.f.skipped = append(s.f.skipped, skippedRange{at: s.parsed, skipped: offset - s.parsed})
}

// checkBudget stops the reading of a file that has too many errors.
func (s *splitter) checkBudget() {
	if s.at < len(s.src) && (len(s.problems) >= maxDiagnostics || s.searched > maxSearched) {
		s.problems = append(s.problems, notChecked(s.f.span(s.at, s.at+1)))
		s.stopped = true
	}
}

// notChecked says that a file has more errors than are looked for.
func notChecked(where diag.Range) diag.Diagnostic {
	return diag.Diagnostic{Code: "too-many", Range: where, Summary: "too many errors: the rest of the file was not checked", Detail: "fix the errors above first"}
}

// tooMuchHCL refuses a file that HCL's parser is not given.
func tooMuchHCL(path string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "too-large", Range: diag.Range{File: path},
		Summary: fmt.Sprintf("the file holds more than %d KiB of HCL beside its heredocs", maxHCL>>10),
		Detail:  "split it into several files",
	}
}

// firstFatal returns the first error that leaves the syntax tree incomplete, or
// nil. HCL reports bad characters before other errors, and those of a line in
// order; that a block lacks its end it notices last.
func firstFatal(found hcl.Diagnostics) (first *hcl.Diagnostic) {
	line := func(p *hcl.Diagnostic) int {
		if p.Summary == "Unclosed configuration block" {
			return math.MaxInt
		}
		return p.Subject.Start.Line
	}
	for _, p := range found {
		if p.Severity == hcl.DiagError && p.Summary != "Attribute redefined" && p.Subject != nil && (first == nil || line(p) < line(first)) {
			first = p
		}
	}
	return first
}
