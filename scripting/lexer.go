package scripting

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind sorts tokens by what the gate needs to know about them.
type tokenKind int

const (
	tokenEnd       tokenKind = iota
	tokenWord                // an identifier or a contextual keyword
	tokenKeyword             // a reserved word
	tokenOperand             // a number, a string, a regular expression, or a template without holes
	tokenOpen                // ( [ { and the beginning of a template's hole
	tokenClose               // ) ] } and the end of a template's hole
	tokenOperator            // every other punctuation
	tokenComma               // ,
	tokenSemicolon           // ;
)

type lexeme struct {
	kind       tokenKind
	start, end int
	text       string
	// newline says that a line ends between the token before and this one.
	newline bool
	// member says that the word follows a dot, so that it is a name and nothing else.
	member bool
}

type lexError struct {
	start, end      int
	summary, detail string
	// unmatched says that a closing bracket does not match the open one.
	unmatched bool
}

// lexer cuts JavaScript or TypeScript into tokens without parsing it. It is
// exact on every valid text: where only a parser could tell a division from a
// regular expression, it refuses the text instead of guessing.
type lexer struct {
	src  string
	at   int
	ts   bool
	prev lexeme
	// braces are the open brackets; a template's hole is a '$'.
	braces []bracket
	// patterns is the size of all regular expressions so far.
	patterns int
	// folded are the characters in the ranges of those that may ignore case.
	folded int
	legal  int
	err    *lexError
}

type bracket struct {
	kind  byte
	start int
	// control says that the parenthesis belongs to if, for, while or with, so
	// that a statement follows it.
	control bool
}

// controlEnd is the text of the token that closes if (…), for (…), while (…)
// or with (…), behind which a statement follows.
const controlEnd = "control)"

const maxBrackets = 128

// next returns the next token. After an error it returns tokenEnd.
func (l *lexer) next() lexeme {
	newline := l.skipSpace()
	if l.err != nil || l.at >= len(l.src) {
		return lexeme{kind: tokenEnd, start: len(l.src), end: len(l.src), newline: newline}
	}
	t := lexeme{start: l.at, newline: newline}
	l.scan(&t)
	if l.err != nil {
		return lexeme{kind: tokenEnd, start: t.start, end: l.at}
	}
	t.end = l.at
	if t.text == "" {
		t.text = l.src[t.start:t.end]
	}
	if t.kind == tokenWord {
		t.member = l.prev.text == "." || l.prev.text == "?."
		if !t.member && reserved(t.text) {
			t.kind = tokenKeyword
		}
	}
	l.prev = t
	return t
}

func (l *lexer) scan(t *lexeme) {
	c := l.src[l.at]
	switch {
	case c == '(' || c == '[' || c == '{':
		t.kind = tokenOpen
		l.open(c)
		l.at++
	case c == ')' || c == ']' || c == '}':
		l.close(t, c)
	case c == '"' || c == '\'':
		t.kind = tokenOperand
		l.quoted(c)
	case c == '`':
		l.at++
		l.template(t)
	case c >= '0' && c <= '9', c == '.' && l.digitAt(l.at+1):
		t.kind = tokenOperand
		l.number()
	case c == '/':
		switch l.slashAfter(l.prev) {
		case division:
			l.operator(t)
		case literal:
			t.kind = tokenOperand
			l.regexp()
		case unclear:
			l.fail(l.at, l.at+1, "it is not clear whether this / begins a regular expression", "put the regular expression, or what is divided, in parentheses")
		}
	case c == '\\' || c == '#' || wordStart(l.src[l.at:]):
		t.kind = tokenWord
		l.word()
	default:
		l.operator(t)
	}
}

func (l *lexer) fail(start, end int, summary, detail string) {
	if l.err == nil {
		l.err = &lexError{start: start, end: max(end, start+1), summary: summary, detail: detail}
	}
	l.at = len(l.src)
}

func (l *lexer) open(c byte) {
	if len(l.braces) >= maxBrackets {
		l.fail(l.at, l.at+1, "brackets nest too deep here", "at most 128 brackets may be open at once; move the inner part into a function or a variable")
		return
	}
	control := c == '(' && l.prev.kind == tokenKeyword && controls(l.prev.text)
	if c == '(' && l.prev.text == "await" && !l.prev.member {
		control = true // for await (…)
	}
	l.braces = append(l.braces, bracket{kind: c, start: l.at, control: control})
}

// close ends a bracket or, for the end of a template's hole, goes on with the template.
func (l *lexer) close(t *lexeme, c byte) {
	t.kind = tokenClose
	if len(l.braces) == 0 {
		l.fail(l.at, l.at+1, "this "+string(c)+" closes nothing", "remove it, or add the bracket that it should close")
		l.err.unmatched = true
		return
	}
	top := l.braces[len(l.braces)-1]
	if c != closing(top.kind) {
		l.fail(l.at, l.at+1, "this "+string(c)+" does not match the "+opening(top.kind)+" before it", "close the brackets in the order in which they were opened")
		l.err.unmatched = true
		return
	}
	l.braces = l.braces[:len(l.braces)-1]
	l.at++
	if top.kind == '$' {
		l.template(t)
		return
	}
	if top.control {
		t.text = controlEnd
	}
}

// template reads characters of a template up to its end or its next hole.
func (l *lexer) template(t *lexeme) {
	resumed := t.kind == tokenClose
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case '\\':
			l.at += 2
		case '`':
			l.at++
			if !resumed {
				t.kind = tokenOperand
			}
			return
		case '$':
			l.at++
			if l.at < len(l.src) && l.src[l.at] == '{' {
				l.hole(t)
				return
			}
		default:
			l.at++
		}
	}
	l.fail(t.start, t.start+1, "this template is never closed", "add the ` that ends it")
}

func (l *lexer) hole(t *lexeme) {
	t.kind = tokenOpen
	if len(l.braces) >= maxBrackets {
		l.open('{')
		return
	}
	l.braces = append(l.braces, bracket{kind: '$', start: l.at - 1})
	l.at++
}

func (l *lexer) quoted(quote byte) {
	start := l.at
	for l.at++; l.at < len(l.src); l.at++ {
		switch l.src[l.at] {
		case quote:
			l.at++
			return
		case '\\':
			if strings.HasPrefix(l.src[l.at+1:], "\r\n") {
				l.at++
			}
			l.at++
			if l.digitAt(l.at) && (l.src[l.at] != '0' || l.digitAt(l.at+1)) {
				l.fail(l.at-1, l.at+1, "this is no escape", `write \xNN for the character with the hexadecimal number NN`)
			}
		case '\n', '\r':
			l.unclosed(start, l.at, "add the "+string(quote)+" that ends it, or use a `template` for text of several lines")
			return
		}
	}
	l.unclosed(start, len(l.src), "add the "+string(quote)+" that ends it")
}

// unclosed refuses a string that does not end on its line.
func (l *lexer) unclosed(start, end int, detail string) {
	quote := l.src[start : start+1]
	switch front := l.src[:start]; {
	case strings.HasSuffix(front, quote+quote):
		detail = "write text of several lines between backticks, as a `template`"
	case start > 0 && isAlnum(front[start-1]) && strings.Contains(front[strings.LastIndexByte(front, '\n')+1:], quote):
		detail = "a " + quote + " in a text ends it: write \\" + quote + " there, or other quotes around the text; or add the " + quote + " that is missing"
	}
	l.fail(start, end, "this string is never closed", detail)
}

// number reads what may follow a digit; whether it is a number is for the parser to say.
func (l *lexer) number() {
	if l.src[l.at] == '0' && l.digitAt(l.at+1) {
		l.fail(l.at, l.at+2, "a number may not begin with 0", "write octal numbers like 0o17, and others without the 0")
	}
	for start := l.at; l.at < len(l.src); {
		c := l.src[l.at]
		exponent := (c == '+' || c == '-') && l.src[l.at-1]|0x20 == 'e' && l.decimalBefore(l.at-1)
		if !exponent && c != '.' && c != '_' && !isAlnum(c) {
			return
		}
		if c == '.' && l.at > start && l.src[l.at-1] == '.' {
			return
		}
		l.at++
	}
}

// decimalBefore reports whether the number that the byte at i belongs to is
// not hexadecimal, in which an e is a digit.
func (l *lexer) decimalBefore(i int) bool {
	for i > 0 && (isAlnum(l.src[i-1]) || l.src[i-1] == '_' || l.src[i-1] == '.') {
		i--
	}
	return i+1 >= len(l.src) || l.src[i] != '0' || l.src[i+1]|0x20 != 'x'
}

// word reads an identifier, a keyword or the flags of a regular expression.
func (l *lexer) word() {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case rest[0] == '#':
			l.at++
		case strings.HasPrefix(rest, `\u{`):
			end := strings.IndexByte(rest, '}')
			if end < 0 || end > 12 {
				l.fail(l.at, l.at+3, "this escape is never closed", "write \\u{…} with up to 6 hexadecimal digits")
				return
			}
			l.at += end + 1
		case rest[0] == '\\':
			l.at++
		case isAlnum(rest[0]) || rest[0] == '_' || rest[0] == '$':
			l.at++
		case rest[0] >= utf8.RuneSelf && wordRune(rest):
			_, size := utf8.DecodeRuneInString(rest)
			l.at += size
		default:
			return
		}
	}
}

// skipSpace skips white space and comments, and reports whether a line ended.
func (l *lexer) skipSpace() (newline bool) {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case rest[0] == '\n' || rest[0] == '\r':
			newline = true
			l.at++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\v' || rest[0] == '\f':
			l.at++
		case strings.HasPrefix(rest, "//"):
			newline = true
			l.at += lineLength(rest)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.fail(l.at, l.at+2, "this comment is never closed", "add the */ that ends it")
				return newline
			}
			newline = newline || strings.ContainsAny(rest[:end+2], "\n\r\u2028\u2029")
			l.comment(rest[:end+4])
			l.at += end + 4
		case rest[0] >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return newline
			}
			newline = newline || r == '\u2028' || r == '\u2029'
			l.at += size
		default:
			return newline
		}
	}
	return newline
}

// maxLegal bounds the comments with licenses, from each of which the compiler
// walks back to the beginning of its line.
const maxLegal = 200

// comment counts a comment that ought to be kept.
func (l *lexer) comment(text string) {
	if text[2] == '!' || strings.Contains(text, "@license") || strings.Contains(text, "@preserve") {
		if l.legal++; l.legal > maxLegal {
			l.fail(l.at, l.at+len(text), "too many comments with licenses", "a body may have 200 of them; remove the ! behind /*")
		}
	}
}

func (l *lexer) digitAt(i int) bool {
	return i < len(l.src) && l.src[i] >= '0' && l.src[i] <= '9'
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func wordStart(s string) bool {
	return s[0] == '_' || s[0] == '$' || isAlnum(s[0]) || s[0] >= utf8.RuneSelf && wordRune(s)
}

func wordRune(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.Nd, r) ||
		unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Pc, r) || r == '\u200c' || r == '\u200d'
}

// lineLength returns the length of the first line of s, without its end.
func lineLength(s string) int {
	for i, r := range s {
		if r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' {
			return i
		}
	}
	return len(s)
}

func closing(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	}
	return '}'
}

func opening(kind byte) string {
	if kind == '$' {
		return "${"
	}
	return string(kind)
}

// controls reports whether a parenthesis after the keyword is followed by a statement.
func controls(keyword string) bool {
	switch keyword {
	case "if", "for", "while", "with":
		return true
	}
	return false
}

// reserved reports whether a word can never be an identifier.
func reserved(word string) bool {
	switch word {
	case "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else",
		"enum", "export", "extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof",
		"new", "null", "return", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void",
		"while", "with":
		return true
	}
	return false
}
