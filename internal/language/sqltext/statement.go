// Package sqltext finds the parameters in SQL statements.
//
// A [Statement] is a statement as written by its author, with parameters such as :name. The
// package implements the strings, names and comments of the databases, but not their grammar:
// the database validates statements.
package sqltext

import (
	"slices"
	"strconv"
	"strings"
)

// Dialect is the lexical syntax of a database.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// Statement is one statement.
type Statement struct {
	// Text is the statement without the semicolon and the comments after it.
	Text string
	// Parameters are the distinct names of its parameters, in order.
	Parameters []string
	// Verb is its first word, in upper case.
	Verb string
	refs []paramRef
}

// paramRef is a reference to a parameter, as offsets in the text.
type paramRef struct{ start, end int }

// Error says why a text is not a statement.
type Error struct {
	// Offset is the position of the error.
	Offset          int
	Summary, Detail string
}

// Error returns the summary and the detail.
func (e *Error) Error() string { return e.Summary + ": " + e.Detail }

// Parse parses a text with exactly one statement. Its error is a [*Error].
func Parse(text string, dialect Dialect) (*Statement, error) {
	l := lexer{text: text, dialect: dialect}
	s := &Statement{}
	last, over := 0, false
	for {
		t, mistake := l.next()
		switch {
		case mistake != nil:
			return nil, mistake
		case t.kind == end:
			if s.Text = strings.Trim(text[:last], spaces); s.Verb == "" {
				return nil, &Error{0, "there is no statement", "write one, such as SELECT name FROM users WHERE id = :id"}
			}
			lead := len(text) - len(strings.TrimLeft(text, spaces))
			for i := range s.refs {
				s.refs[i].start -= lead
				s.refs[i].end -= lead
			}
			return s, nil
		case t.kind == separator:
			over = true
			continue
		case over:
			return nil, &Error{t.start, "there is a second statement", "write one statement in each block"}
		}
		last = t.end
		s.addToken(text, t)
	}
}

// spaces are the spaces around a statement, in all dialects.
const spaces = " \t\n\v\f\r"

// addToken adds a token to the statement.
func (s *Statement) addToken(text string, t token) {
	if s.Verb == "" {
		s.Verb = "?"
		if t.kind == name {
			s.Verb = strings.ToUpper(text[t.start:t.end])
		}
	}
	if t.kind == parameter {
		s.refs = append(s.refs, paramRef{t.start, t.end})
		if named := text[t.start+1 : t.end]; !slices.Contains(s.Parameters, named) {
			s.Parameters = append(s.Parameters, named)
		}
	}
}

// Positional returns the statement with $1 for its first parameter, and so on.
func (s *Statement) Positional() string {
	var b strings.Builder
	from := 0
	for _, u := range s.refs {
		b.WriteString(s.Text[from:u.start])
		b.WriteString("$" + strconv.Itoa(1+slices.Index(s.Parameters, s.Text[u.start+1:u.end])))
		from = u.end
	}
	b.WriteString(s.Text[from:])
	return b.String()
}

// kind is the kind of a token.
type kind int

const (
	end kind = iota
	name
	parameter
	separator
	other // strings, quoted names, numbers and operators
)

// token is a token, as offsets in the text.
type token struct {
	kind       kind
	start, end int
}

// lexer splits a text into tokens.
type lexer struct {
	text    string
	dialect Dialect
	at      int
}

// next returns the next token, after spaces and comments.
func (l *lexer) next() (token, *Error) {
	if mistake := l.skip(); mistake != nil {
		return token{}, mistake
	}
	t := token{kind: other, start: l.at}
	if l.at == len(l.text) {
		t.kind, t.end = end, l.at
		return t, nil
	}
	var mistake *Error
	switch c := l.text[l.at]; {
	case c == 0:
		return t, &Error{l.at, "the statement contains a NUL byte", "remove it"}
	case c == ';':
		t.kind = separator
		l.at++
	case c == '\'':
		mistake = l.quoted('\'', false)
	case c == '"' || c == '`' && l.dialect == SQLite:
		mistake = l.quoted(c, false)
	case c == '[' && l.dialect == SQLite:
		mistake = l.until("]", 1)
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		l.number()
	case c == ':':
		t.kind, mistake = l.colon()
	case c == '$' || l.dialect == SQLite && (c == '?' || c == '@' || c == '#'):
		mistake = l.dollar()
	case isNameStart(c):
		t.kind, mistake = l.word()
	default:
		l.at++
	}
	t.end = l.at
	return t, mistake
}

// skip skips spaces and comments.
func (l *lexer) skip() *Error {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.IndexByte(spaces, rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexAny(rest, l.newlines())
			if n < 0 {
				n = len(rest)
			}
			if nul := strings.IndexByte(rest[:n], 0); nul >= 0 {
				return &Error{l.at + nul, "the statement contains a NUL byte", "remove it"}
			}
			l.at += n
		case strings.HasPrefix(rest, "/*"):
			if mistake := l.comment(); mistake != nil {
				return mistake
			}
		default:
			return nil
		}
	}
	return nil
}

// newlines are the characters that end a line comment.
func (l *lexer) newlines() string {
	if l.dialect == PostgreSQL {
		return "\n\r"
	}
	return "\n"
}

// comment skips a block comment. In PostgreSQL, these nest.
func (l *lexer) comment() *Error {
	start, depth := l.at, 0
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case rest[0] == 0:
			return &Error{l.at, "the statement contains a NUL byte", "remove it"}
		case strings.HasPrefix(rest, "/*") && (depth == 0 || l.dialect == PostgreSQL):
			depth++
			l.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.at += 2
		default:
			l.at++
		}
		if depth == 0 {
			return nil
		}
	}
	return &Error{start, "the comment is not closed", "write */ at its end"}
}

// quoted skips a quoted string or name. A doubled quote is an escaped quote.
func (l *lexer) quoted(quote byte, escapes bool) *Error {
	start := l.at
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == 0:
			return &Error{l.at, "the statement contains a NUL byte", "remove it"}
		case c == '\\' && escapes:
			l.at++
		case c == quote && l.peek(1) == quote:
			l.at++
		case c == quote:
			l.at++
			return nil
		}
	}
	return &Error{start, "the quotes are not closed", "write " + string(quote) + " at the end"}
}

// until skips up to the end of closing.
func (l *lexer) until(closing string, from int) *Error {
	n := strings.Index(l.text[l.at+from:], closing)
	if n < 0 || strings.Contains(l.text[l.at:l.at+from+n], "\x00") {
		return &Error{l.at, "the quotes are not closed", "write " + closing + " at the end"}
	}
	l.at += from + n + len(closing)
	return nil
}

// number skips a number and directly following letters.
func (l *lexer) number() {
	for l.at < len(l.text) {
		c := l.text[l.at]
		if !isName(c) && c != '.' && !((c == '+' || c == '-') && l.text[l.at-1]|0x20 == 'e') {
			return
		}
		l.at++
	}
}

// colon reads :name, or another token that starts with a colon.
func (l *lexer) colon() (kind, *Error) {
	start := l.at
	l.at++
	switch c := l.peek(0); {
	case c == ':' || c == '=':
		l.at++
		return other, nil
	case !isNameStart(c) || c >= 0x80:
		if l.dialect == SQLite {
			return other, &Error{start, "the parameter has no name", "write letters, digits and _ after the colon, as in :id"}
		}
		return other, nil
	}
	for isName(l.peek(0)) && l.peek(0) < 0x80 && l.peek(0) != '$' {
		l.at++
	}
	if c := l.peek(0); c >= 0x80 || c == '$' || l.dialect == SQLite && c == ':' && l.peek(1) == ':' {
		return other, &Error{start, "this is not a valid parameter name", "write letters, digits and _ after the colon, as in :id"}
	}
	return parameter, nil
}

// dollar rejects other kinds of parameters, and reads $tag$ quotes of PostgreSQL.
func (l *lexer) dollar() *Error {
	if l.dialect == PostgreSQL && !isDigit(l.peek(1)) {
		n := 1
		for isName(l.peek(n)) && l.peek(n) != '$' {
			n++
		}
		if l.peek(n) == '$' {
			return l.until(l.text[l.at:l.at+n+1], n+1)
		}
	}
	return &Error{l.at, "parameters start with a colon", "write :name, and pass the value by that name"}
}

// word reads a name, or a string with a prefix such as E'.
func (l *lexer) word() (kind, *Error) {
	start := l.at
	for isName(l.peek(0)) && (l.dialect == PostgreSQL || l.peek(0) != '$') {
		l.at++
	}
	if l.dialect == PostgreSQL && l.peek(0) == '\'' && strings.EqualFold(l.text[start:l.at], "e") {
		return other, l.quoted('\'', true)
	}
	return name, nil
}

// peek returns the byte n ahead, or 0 after the end.
func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

func isName(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }
