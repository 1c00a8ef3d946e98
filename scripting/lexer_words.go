package scripting

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
