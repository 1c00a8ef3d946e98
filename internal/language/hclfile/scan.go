package hclfile

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// scanner reads HCL once, without recursion, before HCL's own parser does. It
// finds the literal heredocs and refuses what the parser could not survive. It
// follows the parser's own scanner in what is a comment, a string, a heredoc
// or a template; a fuzz test holds the two together.
type scanner struct {
	src    []byte
	at     int
	levels []level
	// operand: the last token of the expression ends an operand.
	operand bool
	// newline: a line ended since the last token.
	newline bool
	// separators is how many the file holds so far.
	separators int
	size       scanSize
	heredocs   []heredoc
	problem    *scanProblem
}

// scanProblem is why the scanner stopped.
type scanProblem struct {
	code            string
	start, end      int
	summary, detail string
}

// level is something that is open: its kind is the byte of the bracket, '"',
// '<' for a heredoc, '$' and '%' for template sequences, 0 for the file itself.
type level struct {
	kind byte
	at   int
	// tag closes a heredoc.
	tag []byte
	// base and operators count what the current path holds, without and with
	// this level.
	base, operators int
	// pieces counts the parts of a template.
	pieces int
}

// scan reads all of src and returns its literal heredocs in order.
func scan(src []byte) ([]heredoc, *scanProblem) {
	s := scanner{src: src, levels: make([]level, 1, 16)}
	return s.run()
}

// scanTemplate is scan for a text that is a template as a whole.
func scanTemplate(src []byte) ([]heredoc, *scanProblem) {
	s := scanner{src: src, levels: []level{{}, {kind: '<'}}}
	return s.run()
}

func (s *scanner) run() ([]heredoc, *scanProblem) {
	for s.at < len(s.src) && s.problem == nil {
		s.step()
	}
	return s.heredocs, s.problem
}

// step reads one token, or one piece of a text.
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
		s.fail("too-deep", s.at, fmt.Sprintf("more than %d brackets, quotes and templates are open here", maxNesting), "move the inner parts into locals")
		return
	}
	ops := s.top().operators
	s.levels = append(s.levels, level{kind: kind, at: s.at, base: ops, operators: ops})
	s.operand, s.newline = false, false
}

// pop closes all levels but the outer n.
func (s *scanner) pop(n int) {
	s.levels = s.levels[:n]
	s.operand, s.newline = true, false
}

// code reads one token outside strings.
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
			s.fail("syntax", s.at, "the comment is never closed", "close it with */")
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

// isWord reports whether c begins or continues an identifier or a number.
// Bytes of other scripts count too: HCL refuses those it does not know.
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

// number reads what HCL's scanner takes as one number.
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

// endNumber gives back dots at the end, which are not part of a number.
func (s *scanner) endNumber(start int) {
	for s.at > start+1 && s.src[s.at-1] == '.' {
		s.at--
	}
	if s.at-start > maxNumber {
		s.fail("too-large", start, fmt.Sprintf("the number is longer than %d bytes", maxNumber), fewerDigits)
	}
}

// separate ends the current expression when two operands stand on two lines
// with no operator between them.
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
			fmt.Sprintf("a prefix operator or a ? counts as %d; split it into several locals", prefixWeight))
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

// separator counts the items of all lists and objects of the file.
func (s *scanner) separator() {
	if s.separators++; s.separators > maxItems {
		s.fail("too-large", s.at, fmt.Sprintf("the file has more than %d items in its lists", maxItems),
			"put data into a file of its own, which a script imports")
	}
	s.at++
}

// closeBrace closes the innermost brace or template sequence, whatever
// brackets are open inside it, as HCL's scanner does.
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

// operatorSize returns the length of the operator that src begins with.
func operatorSize(src []byte) int {
	for _, op := range []string{"...", "::", "!=", ">=", "<=", "&&", "||"} {
		if len(src) >= len(op) && string(src[:len(op)]) == op {
			return len(op)
		}
	}
	return 1
}

// scanSize is what HCL's parser would have to do, in words: a token is one, and
// so are each wordBytes of its text.
type scanSize struct {
	// file is for the whole text, definition for what stands since the last
	// definition ended.
	file, definition int
	// began is where the current definition begins, or negative before that.
	began int
	// definitions is how many ended.
	definitions int
}

// weigh counts what was read since offset at, when there were so many heredocs.
// Blanks between tokens are free, and so is the text of literal heredocs.
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
		s.fail("too-large", max(s.size.began, 0), fmt.Sprintf("the definition that begins here holds more than %d words and signs", maxDefinition),
			fmt.Sprintf("split it, or put data into a file of its own, which a script imports; long text counts as one word for each %d bytes", wordBytes))
	case s.size.file > maxWords:
		s.fail("too-large", at, fmt.Sprintf("the file holds more than %d words and signs before this place", maxWords), "split it into several files")
	}
}

// endDefinition notes that a brace closed at the top of the file.
func (s *scanner) endDefinition() {
	s.size.definition, s.size.began = 0, -1
	if s.size.definitions++; s.size.definitions > maxDefinitions {
		s.fail("too-large", s.at, fmt.Sprintf("the file holds more than %d definitions", maxDefinitions), "split it into several files")
	}
}
