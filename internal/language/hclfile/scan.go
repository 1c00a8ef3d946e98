package hclfile

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// scanner scans HCL once, without recursion, before HCL's parser does. It finds the literal
// heredocs and rejects input that the parser could not handle. It follows HCL's scanner in the
// syntax of comments, strings, heredocs and templates; a fuzz test compares the two.
type scanner struct {
	src    []byte
	at     int
	levels []level
	// operand: the last token ended an operand.
	operand bool
	// newline: a line ended after the last token.
	newline bool
	// separators counts the separators of the file.
	separators int
	size       scanSize
	heredocs   []heredoc
	problem    *scanProblem
}

// scanProblem is the reason why the scanner stopped.
type scanProblem struct {
	code            string
	start, end      int
	summary, detail string
}

// level is an open construct. Its kind is the byte of the bracket, '"', '<' for a heredoc, '$'
// and '%' for template sequences, or 0 for the file.
type level struct {
	kind byte
	at   int
	// tag closes a heredoc.
	tag []byte
	// base and operators count the operators of the current path, without and with this level.
	base, operators int
	// pieces counts the parts of a template.
	pieces int
}

// scan scans src and returns its literal heredocs in order.
func scan(src []byte) ([]heredoc, *scanProblem) {
	s := scanner{src: src, levels: make([]level, 1, 16)}
	return s.run()
}

// Outline has the parts at the top level of a file, as offsets in order.
type Outline struct {
	// Comments are the starts of the comments that end with their line.
	Comments []int
	// Definitions are the blocks, and the arguments whose value is an object.
	Definitions []Span
	// Heredocs are the texts of the heredocs without templates. [MaxHCL] bounds the rest of the file.
	Heredocs []Span
}

// Span is the text from Start to before End.
type Span struct{ Start, End int }

// OutlineOf returns the outline of a file, and false if the file has a syntax error that hides its parts.
func OutlineOf(src []byte) (o Outline, ok bool) {
	s := scanner{src: src, levels: make([]level, 1, 16), at: len(src) - len(bytes.TrimPrefix(src, []byte(byteOrderMark)))}
	start := -1 // of the definition that has begun
	for s.at < len(src) && s.problem == nil {
		at, definitions := s.at, s.size.definitions
		if len(s.levels) == 1 {
			switch c := src[at]; {
			case c == '#' || c == '/' && s.peek(1) == '/':
				o.Comments = append(o.Comments, at)
			case start < 0 && c != '/' && bytes.IndexByte([]byte(" \t\r\n"), c) < 0:
				start = at
			}
		}
		s.step()
		if s.size.definitions > definitions && start >= 0 {
			o.Definitions, start = append(o.Definitions, Span{start, s.at}), -1
		}
	}
	for _, h := range s.heredocs {
		o.Heredocs = append(o.Heredocs, Span{h.start, h.end})
	}
	return o, s.problem == nil && len(s.levels) == 1
}

func (s *scanner) run() ([]heredoc, *scanProblem) {
	for s.at < len(s.src) && s.problem == nil {
		s.step()
	}
	return s.heredocs, s.problem
}

// step reads one token, or one part of a text.
func (s *scanner) step() {
	at, heredocs := s.at, len(s.heredocs)
	switch s.top().kind {
	case '"':
		s.quoted()
	case '<':
		s.heredocText()
	default:
		s.code()
	}
	s.countWords(at, heredocs)
}

func (s *scanner) top() *level { return &s.levels[len(s.levels)-1] }

func (s *scanner) peek(n int) byte {
	if s.at+n < len(s.src) {
		return s.src[s.at+n]
	}
	return 0
}

func (s *scanner) fail(code string, start int, summary, detail string) {
	if s.problem == nil {
		s.problem = &scanProblem{code, start, min(start+1, len(s.src)), summary, detail}
	}
}

// push opens a level at the current offset.
func (s *scanner) push(kind byte) {
	if len(s.levels) > maxNesting {
		s.fail("too-deep", s.at, fmt.Sprintf("brackets, quotes and templates are nested more than %d levels deep here", maxNesting), "move the inner parts into locals")
		return
	}
	ops := s.top().operators
	s.levels = append(s.levels, level{kind: kind, at: s.at, base: ops, operators: ops})
	s.operand, s.newline = false, false
}

// pop closes all but the outer n levels.
func (s *scanner) pop(n int) {
	s.levels = s.levels[:n]
	s.operand, s.newline = true, false
}

// code reads one token outside of strings.
func (s *scanner) code() {
	c := s.src[s.at]
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
	case c == '\n':
		s.newline = true
		s.at++
	case c == '#' || c == '/' && s.peek(1) == '/':
		if i := bytes.IndexByte(s.src[s.at:], '\n'); i >= 0 {
			s.at, s.newline = s.at+i+1, true
		} else {
			s.at = len(s.src)
		}
	case c == '/' && s.peek(1) == '*':
		i := bytes.Index(s.src[s.at+2:], []byte("*/"))
		if i < 0 {
			s.fail("syntax", s.at, "the comment is not closed", "close it with */")
			return
		}
		s.at += i + 4
	case c == '"':
		s.separate()
		s.push('"')
		s.at++
	case c == '<' && s.peek(1) == '<':
		s.openHeredoc()
	case isWord(c):
		s.word()
	default:
		s.punctuation(c)
	}
}

// isWord reports whether c is part of an identifier or a number. It includes all non-ASCII
// bytes: HCL rejects unknown characters.
func isWord(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (s *scanner) word() {
	s.separate()
	if isDigit(s.src[s.at]) {
		s.number()
	} else {
		for s.at < len(s.src) && (isWord(s.src[s.at]) || s.src[s.at] == '-') {
			s.at++
		}
	}
	s.operand = true
}

// number reads a number, as HCL's scanner does.
func (s *scanner) number() {
	start := s.at
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c >= '0' && c <= '9' || c == '.':
			s.at++
		case (c == 'e' || c == 'E') && (isDigit(s.peek(1)) || (s.peek(1) == '+' || s.peek(1) == '-') && isDigit(s.peek(2))):
			s.at += 2
		default:
			s.endNumber(start)
			return
		}
	}
	s.endNumber(start)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// endNumber returns trailing dots, which are not part of a number.
func (s *scanner) endNumber(start int) {
	for s.at > start+1 && s.src[s.at-1] == '.' {
		s.at--
	}
	if s.at-start > maxNumber {
		s.fail("too-large", start, fmt.Sprintf("the number is longer than %d bytes", maxNumber), fewerDigits)
	}
}

// separate ends the current expression if two operands are on two lines without an operator
// between them.
func (s *scanner) separate() {
	if s.newline && s.operand {
		s.reset()
	}
	s.newline = false
}

func (s *scanner) reset() {
	top := s.top()
	top.operators = top.base
}

// operator counts one operator of the expression.
func (s *scanner) operator(size int) {
	weight := 1
	c := s.src[s.at]
	if c == '?' || !s.operand && (c == '-' || c == '!') {
		weight = prefixWeight
	}
	top := s.top()
	if top.operators += weight; top.operators > maxOperators {
		s.fail("too-deep", s.at, fmt.Sprintf("the expression has more than %d operators", maxOperators),
			fmt.Sprintf("split it into several locals; a prefix operator or a ? counts as %d", prefixWeight))
	}
	s.operand, s.newline = false, false
	s.at += size
}

// punctuation reads a bracket, a separator or an operator.
func (s *scanner) punctuation(c byte) {
	switch c {
	case '(', '[':
		if s.operand {
			s.operator(0)
		}
		s.push(c)
		s.at++
	case '{':
		s.push(c)
		s.at++
	case ')', ']':
		if open := s.top().kind; open == '(' && c == ')' || open == '[' && c == ']' {
			s.pop(len(s.levels) - 1)
		}
		s.operand, s.newline = true, false
		s.at++
	case '}':
		s.closeBrace()
		s.at++
	case '~':
		if s.peek(1) == '}' {
			s.at++
			s.closeBrace()
		}
		s.at++
	case ',', ';':
		s.separator()
		s.reset()
		s.operand, s.newline = false, false
	case '=':
		s.equals()
	default:
		s.operator(operatorSize(s.src[s.at:]))
	}
}

// separator counts the items of all lists and objects in the file.
func (s *scanner) separator() {
	if s.separators++; s.separators > maxItems {
		s.fail("too-large", s.at, fmt.Sprintf("the lists of the file have more than %d items", maxItems),
			"put data into a file that a script imports")
	}
	s.at++
}

// closeBrace closes the innermost brace or template sequence. Like HCL's scanner, it ignores
// open brackets inside of it.
func (s *scanner) closeBrace() {
	for i := len(s.levels) - 1; i > 0; i-- {
		if k := s.levels[i].kind; k == '{' || k == '$' || k == '%' {
			s.pop(i)
			if i == 1 {
				s.endDefinition()
			}
			break
		}
	}
	s.operand, s.newline = true, false
}

func (s *scanner) equals() {
	switch s.peek(1) {
	case '=':
		s.operator(2)
		return
	case '>':
		s.at++
	}
	s.at++
	s.reset()
	s.operand, s.newline = false, false
}

// operatorSize returns the length of the operator at the start of src.
func operatorSize(src []byte) int {
	for _, op := range []string{"...", "::", "!=", ">=", "<=", "&&", "||"} {
		if len(src) >= len(op) && string(src[:len(op)]) == op {
			return len(op)
		}
	}
	return 1
}

// scanSize estimates the work of HCL's parser, in words: one per token, plus one per wordBytes
// of its text.
type scanSize struct {
	// file counts the whole text, definition the text since the last definition ended.
	file, definition int
	// began is the start of the current definition, or negative before it.
	began int
	// definitions counts the finished definitions.
	definitions int
}

// countWords counts the text since offset at; heredocs is the number of heredocs at that
// offset. Blanks between tokens, and the text of literal heredocs, are free.
func (s *scanner) countWords(at, heredocs int) {
	read := s.at - at
	if c := s.src[at]; read == 1 && (c == ' ' || c == '\t' || c == '\r') {
		return
	}
	for _, h := range s.heredocs[heredocs:] {
		read -= h.end - h.start
	}
	if c := s.src[at]; s.size.began < 0 && c != '\n' && c != '}' {
		s.size.began = at
	}
	words := 1 + read/wordBytes
	s.size.file += words
	s.size.definition += words
	switch {
	case s.size.definition > maxDefinition:
		s.fail("too-large", max(s.size.began, 0), fmt.Sprintf("the definition that starts here contains more than %d words and operators", maxDefinition),
			fmt.Sprintf("split it, or put data into a file that a script imports; long text counts as one word per %d bytes", wordBytes))
	case s.size.file > maxWords:
		s.fail("too-large", at, fmt.Sprintf("the file contains more than %d words and operators before this position", maxWords), "split it into several files")
	}
}

// endDefinition records that a top-level brace closed.
func (s *scanner) endDefinition() {
	s.size.definition, s.size.began = 0, -1
	if s.size.definitions++; s.size.definitions > maxDefinitions {
		s.fail("too-large", s.at, fmt.Sprintf("the file contains more than %d definitions", maxDefinitions), "split it into several files")
	}
}
