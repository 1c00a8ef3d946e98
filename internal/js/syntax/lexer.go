package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind classifies tokens for the checker.
type tokenKind int

const (
	End       tokenKind = iota
	Word                // an identifier or a contextual keyword
	Keyword             // a reserved word
	Operand             // a number, a string, a regular expression, or a template without holes
	Open                // ( [ { and the start of a hole in a template
	Close               // ) ] } and the end of a hole in a template
	Operator            // every other punctuation
	Comma               // ,
	Semicolon           // ;
)

// Token is one token of a text.
type Token struct {
	Kind       tokenKind
	Start, End int
	Text       string
	// Newline is set if a line ends between the previous token and this one.
	Newline bool
	// Member is set if the word follows a dot: then it is only a name.
	Member bool
}

// Error is the error for a text that is not accepted.
type Error struct {
	start, end      int
	Summary, Detail string
	// unmatched is set if a closing bracket does not match the open one.
	unmatched bool
}

// Lexer splits JavaScript or TypeScript into tokens without parsing it. It is exact for every valid
// text. Where only a parser could distinguish a division from a regular expression, it fails.
type Lexer struct {
	Src        string
	At         int
	TypeScript bool
	Prev       Token
	// Brackets are the open brackets; '$' is the hole of a template.
	Brackets []bracket
	// patterns is the size of all regular expressions so far.
	patterns int
	// folded is the size of the ranges in regular expressions that may ignore case.
	folded int
	legal  int
	Err    *Error
}

type bracket struct {
	kind  byte
	start int
	// control is set if the parenthesis belongs to if, for, while or with, so that a statement
	// follows.
	control bool
}

// controlEnd is the text of the token that closes if (…), for (…), while (…) or with (…). A
// statement follows it.
const controlEnd = "control)"

const maxBrackets = 128

// Next returns the next token. After an error it returns [End].
func (l *Lexer) Next() Token {
	newline := l.skipSpace()
	if l.Err != nil || l.At >= len(l.Src) {
		return Token{Kind: End, Start: len(l.Src), End: len(l.Src), Newline: newline}
	}
	t := Token{Start: l.At, Newline: newline}
	l.scan(&t)
	if l.Err != nil {
		return Token{Kind: End, Start: t.Start, End: l.At}
	}
	t.End = l.At
	if t.Text == "" {
		t.Text = l.Src[t.Start:t.End]
	}
	if t.Kind == Word {
		t.Member = l.Prev.Text == "." || l.Prev.Text == "?."
		if !t.Member && IsReserved(t.Text) {
			t.Kind = Keyword
		}
	}
	l.Prev = t
	return t
}

func (l *Lexer) scan(t *Token) {
	c := l.Src[l.At]
	switch {
	case c == '(' || c == '[' || c == '{':
		t.Kind = Open
		l.open(c)
		l.At++
	case c == ')' || c == ']' || c == '}':
		l.close(t, c)
	case c == '"' || c == '\'':
		t.Kind = Operand
		l.quoted(c)
	case c == '`':
		l.At++
		l.template(t)
	case c >= '0' && c <= '9', c == '.' && l.digitAt(l.At+1):
		t.Kind = Operand
		l.number()
	case c == '/':
		switch l.slashAfter(l.Prev) {
		case division:
			l.operator(t)
		case literal:
			t.Kind = Operand
			l.regexp()
		case unclear:
			l.fail(l.At, l.At+1, "it is not clear whether this / starts a regular expression", "put the regular expression, or the dividend, in parentheses")
		}
	case c == '\\' || c == '#' || WordStart(l.Src[l.At:]):
		t.Kind = Word
		l.word()
	default:
		l.operator(t)
	}
}

func (l *Lexer) fail(start, end int, summary, detail string) {
	if l.Err == nil {
		l.Err = &Error{start: start, end: max(end, start+1), Summary: summary, Detail: detail}
	}
	l.At = len(l.Src)
}

func (l *Lexer) open(c byte) {
	if len(l.Brackets) >= maxBrackets {
		l.fail(l.At, l.At+1, "brackets nest too deep here", "at most 128 brackets may be open at once; move the inner part into a function or a variable")
		return
	}
	control := c == '(' && l.Prev.Kind == Keyword && controls(l.Prev.Text)
	if c == '(' && l.Prev.Text == "await" && !l.Prev.Member {
		control = true // for await (…)
	}
	l.Brackets = append(l.Brackets, bracket{kind: c, start: l.At, control: control})
}

// close closes a bracket. At the end of a hole it continues with the template.
func (l *Lexer) close(t *Token, c byte) {
	t.Kind = Close
	if len(l.Brackets) == 0 {
		l.fail(l.At, l.At+1, "this "+string(c)+" closes nothing", "remove it, or add the bracket that it should close")
		l.Err.unmatched = true
		return
	}
	top := l.Brackets[len(l.Brackets)-1]
	if c != closing(top.kind) {
		l.fail(l.At, l.At+1, "this "+string(c)+" does not match the "+opening(top.kind)+" before it", "close the brackets in the order in which they were opened")
		l.Err.unmatched = true
		return
	}
	l.Brackets = l.Brackets[:len(l.Brackets)-1]
	l.At++
	if top.kind == '$' {
		l.template(t)
		return
	}
	if top.control {
		t.Text = controlEnd
	}
}

// template reads a template up to its end or its next hole.
func (l *Lexer) template(t *Token) {
	resumed := t.Kind == Close
	for l.At < len(l.Src) {
		switch l.Src[l.At] {
		case '\\':
			l.At += 2
		case '`':
			l.At++
			if !resumed {
				t.Kind = Operand
			}
			return
		case '$':
			l.At++
			if l.At < len(l.Src) && l.Src[l.At] == '{' {
				l.hole(t)
				return
			}
		default:
			l.At++
		}
	}
	l.fail(t.Start, t.Start+1, "this template is never closed", "add the ` that ends it")
}

func (l *Lexer) hole(t *Token) {
	t.Kind = Open
	if len(l.Brackets) >= maxBrackets {
		l.open('{')
		return
	}
	l.Brackets = append(l.Brackets, bracket{kind: '$', start: l.At - 1})
	l.At++
}

func (l *Lexer) quoted(quote byte) {
	start := l.At
	for l.At++; l.At < len(l.Src); l.At++ {
		switch l.Src[l.At] {
		case quote:
			l.At++
			return
		case '\\':
			if strings.HasPrefix(l.Src[l.At+1:], "\r\n") {
				l.At++
			}
			l.At++
			if l.digitAt(l.At) && (l.Src[l.At] != '0' || l.digitAt(l.At+1)) {
				l.fail(l.At-1, l.At+1, "this is not an escape sequence", `write \xNN for the character with the hexadecimal number NN`)
			}
		case '\n', '\r':
			l.unclosed(start, l.At, "add the "+string(quote)+" that ends it, or use a `template` for text of several lines")
			return
		}
	}
	l.unclosed(start, len(l.Src), "add the "+string(quote)+" that ends it")
}

// unclosed fails for a string that does not end on its line.
func (l *Lexer) unclosed(start, end int, detail string) {
	quote := l.Src[start : start+1]
	switch front := l.Src[:start]; {
	case strings.HasSuffix(front, quote+quote):
		detail = "write text of several lines between backticks, as a `template`"
	case start > 0 && IsAlnum(front[start-1]) && strings.Contains(front[strings.LastIndexByte(front, '\n')+1:], quote):
		detail = "a " + quote + " in a text ends it: write \\" + quote + " there, or other quotes around the text; or add the " + quote + " that is missing"
	}
	l.fail(start, end, "this string is never closed", detail)
}

// number reads the characters after a digit. The parser checks the number.
func (l *Lexer) number() {
	if l.Src[l.At] == '0' && l.digitAt(l.At+1) {
		l.fail(l.At, l.At+2, "a number cannot start with 0", "write octal numbers like 0o17, and others without the 0")
	}
	for start := l.At; l.At < len(l.Src); {
		c := l.Src[l.At]
		exponent := (c == '+' || c == '-') && l.Src[l.At-1]|0x20 == 'e' && l.decimalBefore(l.At-1)
		if !exponent && c != '.' && c != '_' && !IsAlnum(c) {
			return
		}
		if c == '.' && l.At > start && l.Src[l.At-1] == '.' {
			return
		}
		l.At++
	}
}

// decimalBefore reports whether the number that includes byte i is not hexadecimal; e is a digit in
// hexadecimal numbers.
func (l *Lexer) decimalBefore(i int) bool {
	for i > 0 && (IsAlnum(l.Src[i-1]) || l.Src[i-1] == '_' || l.Src[i-1] == '.') {
		i--
	}
	return i+1 >= len(l.Src) || l.Src[i] != '0' || l.Src[i+1]|0x20 != 'x'
}

// word reads an identifier, a keyword or the flags of a regular expression.
func (l *Lexer) word() {
	for l.At < len(l.Src) {
		rest := l.Src[l.At:]
		switch {
		case rest[0] == '#':
			l.At++
		case strings.HasPrefix(rest, `\u{`):
			end := strings.IndexByte(rest, '}')
			if end < 0 || end > 12 {
				l.fail(l.At, l.At+3, "this escape is never closed", "write \\u{…} with up to 6 hexadecimal digits")
				return
			}
			l.At += end + 1
		case rest[0] == '\\':
			l.At++
		case IsAlnum(rest[0]) || rest[0] == '_' || rest[0] == '$':
			l.At++
		case rest[0] >= utf8.RuneSelf && wordRune(rest):
			_, size := utf8.DecodeRuneInString(rest)
			l.At += size
		default:
			return
		}
	}
}

// skipSpace skips white space and comments, and reports whether a line ended.
func (l *Lexer) skipSpace() (newline bool) {
	for l.At < len(l.Src) {
		rest := l.Src[l.At:]
		switch {
		case rest[0] == '\n' || rest[0] == '\r':
			newline = true
			l.At++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\v' || rest[0] == '\f':
			l.At++
		case strings.HasPrefix(rest, "//"):
			newline = true
			l.At += LineLength(rest)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.fail(l.At, l.At+2, "this comment is never closed", "add the */ that ends it")
				return newline
			}
			newline = newline || strings.ContainsAny(rest[:end+2], "\n\r\u2028\u2029")
			l.comment(rest[:end+4])
			l.At += end + 4
		case rest[0] >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return newline
			}
			newline = newline || r == '\u2028' || r == '\u2029'
			l.At += size
		default:
			return newline
		}
	}
	return newline
}

// maxLegal limits license comments. For each of them the compiler scans back to the start of its
// line.
const maxLegal = 200

// comment counts license comments.
func (l *Lexer) comment(text string) {
	if text[2] == '!' || strings.Contains(text, "@license") || strings.Contains(text, "@preserve") {
		if l.legal++; l.legal > maxLegal {
			l.fail(l.At, l.At+len(text), "too many comments with licenses", "a script may have 200 of them; remove the ! after /*")
		}
	}
}

func (l *Lexer) digitAt(i int) bool {
	return i < len(l.Src) && l.Src[i] >= '0' && l.Src[i] <= '9'
}

// IsAlnum reports whether c is an ASCII letter or digit.
func IsAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// WordStart reports whether s, which is not empty, starts with a letter of a word.
func WordStart(s string) bool {
	return s[0] == '_' || s[0] == '$' || IsAlnum(s[0]) || s[0] >= utf8.RuneSelf && wordRune(s)
}

func wordRune(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.Nd, r) ||
		unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Pc, r) || r == '\u200c' || r == '\u200d'
}

// LineLength returns the length of the first line of s, without its terminator.
func LineLength(s string) int {
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

// controls reports whether a statement follows the parenthesis after the keyword.
func controls(keyword string) bool {
	switch keyword {
	case "if", "for", "while", "with":
		return true
	}
	return false
}

// IsReserved reports whether a word is never an identifier.
func IsReserved(word string) bool {
	switch word {
	case "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else",
		"enum", "export", "extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof",
		"new", "null", "return", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void",
		"while", "with":
		return true
	}
	return false
}
