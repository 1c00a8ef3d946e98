package hclfile

import (
	"bytes"
	"fmt"
	"strings"
)

// piece is a part of a file that is parsed by itself: an argument, a block on
// one line, the line that begins a block, or a line that is none of these.
type piece struct {
	from, to, indent int
	heredocs         []heredoc
	words            int
	problem          *scanProblem
	// equals and brace are the offsets of the first "=" and "{" that stand in no
	// bracket, or -1.
	equals, brace int
	// opens says that the lines behind the piece stand in the block that it begins.
	opens bool
	head  heading
}

// searchedBytes is how many bytes that are searched for the end of a text count
// as one word.
const searchedBytes = 64

// pieceScanner finds where a piece ends.
type pieceScanner struct {
	scanner
	r *reader
	p piece
	// line is where the current line begins.
	line int
}

// piece reads the piece that begins at an offset.
func (r *reader) piece(from, indent int) piece {
	s := &pieceScanner{
		scanner: scanner{src: r.src, at: from, levels: make([]level, 1, 8)}, r: r, line: from,
		p: piece{from: from, indent: indent, equals: -1, brace: -1, head: readHeading(r.src, from)},
	}
	for s.next() {
		s.step()
		if s.scanner.problem != nil && !s.mend() {
			break
		}
	}
	s.p.heredocs, s.p.words = s.heredocs, s.size.file
	s.p.to = max(min(s.at, len(r.src)), min(from+1, len(r.src)))
	s.checkBrace()
	return s.p
}

// note remembers the first mistake of the piece.
func (s *pieceScanner) note(code string, from, to int, summary, detail string) {
	if s.p.problem == nil {
		s.p.problem = &scanProblem{code, from, to, summary, detail}
	}
}

// next reports whether the piece goes on at the current offset.
func (s *pieceScanner) next() bool {
	if s.at >= len(s.src) {
		s.unclosed(1)
		return false
	}
	kind := s.top().kind
	if kind == '"' || kind == '<' {
		return true
	}
	switch c := s.src[s.at]; {
	case c == '}' && len(s.levels) == 1 && len(s.r.frames) > 1 && s.at > s.p.from:
		s.r.broken = true
		return false
	case c == '\n' || c == '#' || c == '/' && s.peek(1) == '/':
		if s.endOfLine() {
			return false
		}
		s.line = s.at + 1
	case c == '<' && s.peek(1) == '<' && len(asciiWord(bytes.TrimPrefix(s.src[s.at+2:], []byte("-")))) == 0:
		s.note("syntax", s.at, s.at+2, noHeredoc, noHeredocHint)
		return s.skipText() && s.next()
	case len(s.levels) > 1:
	case c == '=' && s.p.equals < 0 && s.peek(1) != '=':
		s.p.equals = s.at
	case c == '{' && s.p.brace < 0:
		s.p.brace = s.at
	}
	return true
}

// endOfLine reports whether the piece ends with the line. It notes brackets
// that the next line shows to be unclosed.
func (s *pieceScanner) endOfLine() bool {
	if len(s.levels) == 1 {
		return true
	}
	if s.line == s.p.from && s.opensBlock() {
		return true
	}
	next := s.at + lineLength(s.src[s.at:])
	text := bytes.TrimLeft(s.src[next:], " \t")
	if endsLine(text) {
		return false
	}
	indent := len(s.src) - len(text) - next
	next += indent
	for len(s.levels) > 1 && s.cannotHold(s.top().kind, next, indent) {
		s.unclosed(len(s.levels) - 1)
	}
	return len(s.levels) == 1
}

// opensBlock reports, at the end of the first line, whether what is open is the
// brace of a block.
func (s *pieceScanner) opensBlock() bool {
	if len(s.levels) != 2 || s.p.brace != s.levels[1].at {
		return false
	}
	last := len(bytes.TrimSpace(s.src[s.p.brace+1:s.at])) == 0
	switch rule := s.r.top().rule; {
	case s.p.equals >= 0 && s.p.equals < s.p.brace:
		s.p.opens = last && (len(s.p.head.labels) > 0 || rule.hasBlock(s.p.head.name) && rule.arg(s.p.head.name) == nil)
		return s.p.opens
	case rule.arg(s.p.head.name) != nil && !rule.hasBlock(s.p.head.name):
		return false // it lacks its "="
	case last:
		s.p.opens = true
	default:
		next, indent := nextLine(s.src, s.at)
		s.p.opens = next < len(s.src) && (indent > s.p.indent || indent == s.p.indent && s.src[next] == '}')
	}
	return true
}

// cannotHold reports whether the line at next shows that a bracket is unclosed.
func (s *pieceScanner) cannotHold(kind byte, next, indent int) bool {
	if s.r.definition(next) && indent <= s.r.outer() {
		return true
	}
	if s.r.mode == unclosed && indent <= s.p.indent && (indent < s.p.indent || strings.IndexByte("}])", s.src[next]) < 0) {
		return true
	}
	switch kind {
	case '(', '[':
		return s.src[next] == '}' || startsItem(s.src, next)
	case '$', '%':
		return startsItem(s.src, next)
	}
	return false
}

// closers are what ends the levels of a scanner.
var closers = map[byte]string{'(': ")", '[': "]", '{': "}", '$': "}", '%': "}"}

// unclosed notes that the innermost level is never closed, and drops all levels
// but the outer n.
func (s *pieceScanner) unclosed(n int) {
	if len(s.levels) == 1 {
		return
	}
	top := s.top()
	switch top.kind {
	case '"':
		s.note("syntax", top.at, top.at+1, "the string is not closed on its line", `close it with a quote; write \n for a line end, or use a heredoc`)
	case '<':
		s.note("syntax", top.at, top.at+1, fmt.Sprintf("the heredoc <<%s is never closed", top.tag), fmt.Sprintf("add a line that holds %s alone", top.tag))
	default:
		s.note("syntax", top.at, top.at+1, fmt.Sprintf("this %q is never closed", s.src[top.at:top.at+1]), fmt.Sprintf("add the %q that ends it", closers[top.kind]))
	}
	s.pop(n)
}

// mend goes on behind what the scanner refused. It reports false when the piece
// ends there.
func (s *pieceScanner) mend() bool {
	problem := s.unclosedSequence(s.scanner.problem)
	s.scanner.problem = nil
	s.note(problem.code, problem.start, problem.end, problem.summary, problem.detail)
	at := s.at
	switch {
	case problem.code != "syntax":
		s.p.problem = problem
		s.r.giveUp(s.p.from)
		s.at = len(s.src)
		return false
	case s.top().kind == '"':
		n := len(s.levels) - 1
		for n > 1 && s.levels[n-1].at >= s.line && s.levels[n-1].kind != '(' && s.levels[n-1].kind != '[' && s.levels[n-1].kind != '{' {
			n--
		}
		if s.pop(n); n == 1 {
			s.at = s.r.textEnd(s.at)
		}
		return true
	case at < len(s.src) && s.src[at] == '/':
		s.r.giveUp(at)
		s.at = len(s.src)
		return false
	default:
		return s.skipText()
	}
}

// skipText goes on behind the text of a heredoc that begins wrong, or never ends.
func (s *pieceScanner) skipText() bool {
	tag := asciiWord(bytes.TrimLeft(s.src[s.at:], "<-\"' \t"))
	start := s.at + lineLength(s.src[s.at:])
	if !s.r.spend((len(s.src)-start)/searchedBytes, s.p.from) {
		s.at = len(s.src)
		return false
	}
	end := outdented(s.src, start, s.p.indent)
	if len(tag) == 0 {
		s.at = max(start-1, s.at+2)
		return true
	}
	if closing, found := heredocEnd(s.src[:end], start, tag, true); found == heredocClosed {
		s.at = closing + bytes.Index(s.src[closing:], tag) + len(tag)
		s.operand = true
		return true
	}
	s.at = end
	return false
}

// checkBrace finds blocks whose brace is missing, or part of what is wrong.
func (s *pieceScanner) checkBrace() {
	p := &s.p
	line := bytes.TrimRight(s.src[p.from:p.to], " \t\r\n")
	if p.opens || p.equals >= 0 || bytes.IndexByte(line, '\n') >= 0 || p.head.name == "" {
		return
	}
	rule := s.r.top().rule
	known := rule.hasBlock(p.head.name)
	next, indent := nextLine(s.src, p.to)
	switch {
	case next >= len(s.src) || s.r.definition(next):
	case bytes.HasSuffix(line, []byte("{")) && p.brace < 0:
		p.opens = known || indent > p.indent
	case p.brace < 0 && known && s.src[next] == '{' && onlyBrace(s.src[next:]):
		p.opens, p.brace, p.to = true, next, next+1
	case p.brace < 0 && known:
		p.opens = indent > p.indent
	}
}
