package hclfile

import (
	"bytes"
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// splitter parses a file with a syntax error block by block, so that each block reports its
// first syntax error and the other blocks are still checked. It scans and parses each byte
// once.
type splitter struct {
	scanner
	f        *File
	problems diag.List
	// parsed is the length of the text given to HCL so far.
	parsed int
	// searched counts the bytes searched without success for the end of a heredoc or comment.
	searched int
	// stopped means that the rest of the file is not checked.
	stopped bool
}

// splitBlocks parses the source from start, block by block. found is what the scanner or HCL
// reported for the whole source.
func (f *File) splitBlocks(start int, found diag.List) diag.List {
	f.broken, f.skipped, f.heredocs = true, nil, nil
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	s := &splitter{f: f, scanner: scanner{src: []byte(f.source), at: start, levels: make([]level, 1, 16)}}
	for s.at < len(s.src) && !s.stopped {
		s.block(body)
	}
	s.startPart(0)
	body.SrcRange = hcl.Range{Start: hcl.Pos{Byte: s.parsed}, End: hcl.Pos{Byte: s.parsed + len(s.src)}}
	f.body = body
	if !s.problems.HasErrors() {
		return append(s.problems, found[0])
	}
	return s.problems
}

// block parses from the current offset to the next top-level heading, and adds the content to
// body.
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
		s.parsePart(body, from, to) // the text before it is complete
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

// lineStartOf returns the offset of the start of a line.
func (s *splitter) lineStartOf(at int) int { return bytes.LastIndexByte(s.src[:at], '\n') + 1 }

// splitsAt reports whether a top-level block starts at the current offset, the first word of a
// line. Outside of brackets, its heading may have an error. Inside of brackets, the closing
// bracket is missing, so only the heading of a known block starts a block, indented no more
// than the last one.
func (s *splitter) splitsAt(column, indent int) bool {
	name, labels, ok := heading(s.src[s.at:])
	if len(s.levels) == 1 {
		rest := bytes.TrimLeft(s.src[s.at+len(name):], " \t")
		return ok || fileRules[s.f.kind].hasBlock(name) && !bytes.HasPrefix(rest, []byte("="))
	}
	return ok && column <= indent && s.isTop(name, labels)
}

// isTop reports whether a block with this number of labels is allowed at the top level.
func (s *splitter) isTop(name string, labels int) bool {
	top := fileRules[s.f.kind]
	return top.hasBlock(name) && len(top.block(name).labels) == labels
}

// nextHeading returns the offset of the next line that starts a known block and is indented no
// more than indent.
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

// lineLength returns the length of the first line of src, including its line end.
func lineLength(src []byte) int {
	if i := bytes.IndexByte(src, '\n'); i >= 0 {
		return i + 1
	}
	return len(src)
}

// heading reads the first word of a line. It reports whether that is a block type, followed by
// labels and a brace.
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

// parsePart parses a part of the source with HCL. It adds the content to body, or reports the
// first syntax error.
func (s *splitter) parsePart(body *hclsyntax.Body, from, to int) {
	if s.parsed+to-from > 2*MaxHCL+s.heredocBytes() {
		s.problems = append(s.problems, tooMuchHCL(s.f.path))
		s.stopped = true
		return
	}
	to = from + len(bytes.TrimRight(s.src[from:max(from, to)], " \t\r\n"))
	part, found := s.parse(from, to, "\n")
	if first := firstFatal(found); first != nil {
		end := s.parsed - 1 // errors after the end of the part are reported at its end
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

// openBefore returns the start of the line at an offset, and the text that closes the brackets
// open there. It returns false if a template is open.
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

// failBefore reports the first syntax error in a part of the source, completed by closing. It
// returns false if there is none.
func (s *splitter) failBefore(from, to int, closing string) bool {
	if s.parsed+to-from > 2*MaxHCL+s.heredocBytes() {
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

// heredocBytes is the length of the heredocs of the current block, which HCL does not parse.
func (s *splitter) heredocBytes() (n int) {
	for _, h := range s.heredocs {
		n += h.end - h.start
	}
	return n
}

// parse parses a part of the source with HCL, without the text of its heredocs and with tail
// appended.
func (s *splitter) parse(from, to int, tail string) (*hclsyntax.Body, hcl.Diagnostics) {
	start := s.parsed
	s.startPart(from)
	text := make([]byte, 0, to-from+len(tail))
	at := from
	for _, h := range s.heredocs {
		h.cut = start + len(text) + h.open - at
		text = append(text, s.src[at:h.start]...)
		s.parsed = start + len(text)
		s.startPart(h.end)
		s.f.heredocs = append(s.f.heredocs, h)
		at = h.end
	}
	text = append(append(text, s.src[at:to]...), tail...)
	s.parsed = start + len(text)
	parsed, found := hclsyntax.ParseConfig(text, "", hcl.Pos{Byte: start, Line: 1, Column: 1})
	return parsed.Body.(*hclsyntax.Body), found
}

// startPart records that the next text for HCL is at an offset of the source.
func (s *splitter) startPart(offset int) {
	s.f.skipped = append(s.f.skipped, skippedRange{at: s.parsed, skipped: offset - s.parsed})
}

// checkBudget stops the parsing of a file with too many errors.
func (s *splitter) checkBudget() {
	if s.at < len(s.src) && (len(s.problems) >= maxDiagnostics || s.searched > maxSearched) {
		s.problems = append(s.problems, notChecked(s.f.span(s.at, s.at+1)))
		s.stopped = true
	}
}

// notChecked reports that the rest of a file was not checked.
func notChecked(where diag.Range) diag.Diagnostic {
	return diag.Diagnostic{Code: "too-many", Range: where, Summary: "too many errors: the rest of the file was not checked", Detail: "fix the errors above first"}
}

// tooMuchHCL reports a file that is too large for HCL's parser.
func tooMuchHCL(path string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "too-large", Range: diag.Range{File: path},
		Summary: fmt.Sprintf("the file contains more than %d KiB of HCL besides its heredocs", MaxHCL>>10),
		Detail:  "split it into several files",
	}
}

// firstFatal returns the first error that leaves the syntax tree incomplete, or nil. HCL
// reports invalid characters before other errors, and a missing end of a block last.
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
