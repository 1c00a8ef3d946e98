package syntax

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type slashKind int

const (
	division slashKind = iota
	literal
	unclear
)

// slashAfter returns the meaning of a / after the token prev. It never guesses: after a } or a word
// such as yield only a parser can decide.
func (l *Lexer) slashAfter(prev Token) slashKind {
	switch prev.Kind {
	case Word:
		if !prev.Member && (prev.Text == "await" || prev.Text == "yield" || prev.Text == "of") {
			return unclear
		}
		return division
	case Operand:
		return division
	case Keyword:
		if prev.endsOperand() {
			return division
		}
		return literal
	case Close:
		if prev.Text == "}" || prev.Text == controlEnd {
			return unclear
		}
		return division
	case Operator:
		if l.TypeScript && prev.Text == ">" {
			return unclear
		}
		return literal
	}
	return literal
}

func (l *Lexer) regexp() {
	start, class := l.At, false
	for l.At++; l.At < len(l.Src); l.At++ {
		switch c := l.Src[l.At]; {
		case c == '\n' || c == '\r':
			l.fail(start, l.At, "this regular expression is never closed", "add the / that ends it")
			return
		case c == '\\':
			l.At++
			if l.At < len(l.Src) && (l.Src[l.At] == '\n' || l.Src[l.At] == '\r') {
				l.At--
			}
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.At++
			// Both engines parse patterns recursively.
			pattern := l.Src[start+1 : l.At-1]
			size, why := PatternSize(pattern)
			l.patterns += size
			if why == "" && l.patterns > maxPatterns {
				why = "the repetitions in all regular expressions of a script may add up to 100,000"
			}
			if why != "" {
				l.fail(start, l.At, "this regular expression is too large", why)
			}
			if flags := l.flags(); l.Err == nil && (strings.Contains(flags, "i") || strings.Contains(pattern, "(?")) {
				l.checkFolded(start, pattern)
			}
			return
		}
	}
	l.fail(start, len(l.Src), "this regular expression is never closed", "add the / that ends it")
}

// flags reads the flags of a regular expression. A flag must not occur twice.
func (l *Lexer) flags() string {
	from := l.At
	l.word()
	flags := l.Src[from:min(l.At, len(l.Src))]
	for i := range len(flags) {
		if strings.IndexByte(flags[i+1:], flags[i]) >= 0 {
			l.fail(from, l.At, "a flag of this regular expression is repeated", "remove one of the two")
			break
		}
	}
	return flags
}

// checkFolded limits the ranges of all regular expressions that may ignore case; groups with (? may
// set this flag.
func (l *Lexer) checkFolded(start int, pattern string) {
	if l.folded += rangeSizes(pattern); l.folded > maxRanges {
		l.fail(start, l.At, "this regular expression is too large", whyRanges)
	}
}

// isOperator reports whether s is an operator of more than one byte.
func isOperator(s string) bool {
	switch s {
	case ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
		"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--",
		"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "**":
		return true
	}
	return false
}

func (l *Lexer) operator(t *Token) {
	rest := l.Src[l.At:]
	switch {
	case rest[0] == ',':
		t.Kind = Comma
		l.At++
		return
	case rest[0] == ';':
		t.Kind = Semicolon
		l.At++
		return
	case strings.HasPrefix(rest, "?.") && l.digitAt(l.At+2):
		t.Kind = Operator
		l.At++
		return
	}
	t.Kind = Operator
	for n := min(4, len(rest)); n > 1; n-- {
		if isOperator(rest[:n]) && !(l.TypeScript && rest[0] == '>') {
			l.At += n
			l.postfix(t, rest[:n])
			return
		}
	}
	_, size := utf8.DecodeRuneInString(rest)
	l.At += size
	if l.TypeScript && rest[0] == '!' {
		l.postfix(t, "++")
	}
}

// postfix makes x++, x-- and x! of TypeScript operands, as they are for the next token.
func (l *Lexer) postfix(t *Token, op string) {
	if (op == "++" || op == "--") && !t.Newline && l.Prev.endsOperand() {
		t.Kind = Operand
	}
}

// endsOperand reports whether the token certainly ends an operand.
func (t Token) endsOperand() bool {
	switch t.Kind {
	case Word, Operand:
		return true
	case Keyword:
		return t.Text == "this" || t.Text == "super" || t.Text == "null" || t.Text == "true" || t.Text == "false"
	case Close:
		return t.Text != "}" && t.Text != controlEnd
	}
	return false
}

// Limits of a regular expression. Both engines parse it recursively, and one expands repetitions.
const (
	maxPattern  = 8 << 10 // bytes
	maxGroups   = 100     // nested groups
	maxExpanded = 50_000  // atoms with all repetitions expanded
	maxPatterns = 100_000 // the same for all literals of a script
	// maxRanges limits the characters in all ranges of classes: if case is ignored, an engine looks
	// up the lower case of each, which takes about 25 ns.
	maxRanges = 4 << 20
)

const whyRanges = "the ranges in classes of regular expressions, such as [a-z], may add up to 4,194,304 characters"

// PatternSize estimates the number of atoms of a regular expression with expanded repetitions. If
// it is too large, refused is the reason. It ignores escapes and classes, and so may return too
// much, but never too little.
func PatternSize(pattern string) (size int, refused string) {
	if len(pattern) > maxPattern {
		return 0, "a regular expression may have at most 8 KiB"
	}
	var outer []int // sizes before the open groups
	atom := 0       // size of the operand of a repetition
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '(':
			outer = append(outer, size)
			size, atom = 0, 0
		case ')':
			atom = size
			if n := len(outer); n > 0 {
				size += outer[n-1]
				outer = outer[:n-1]
			}
		case '{':
			size += atom * (repetitions(pattern[i+1:]) - 1)
		default:
			size, atom = size+1, 1
		}
		if len(outer) > maxGroups {
			return size, "groups may nest at most 100 deep in a regular expression"
		}
		if size > maxExpanded {
			return size, "a regular expression may have at most 50,000 atoms when its repetitions are written out"
		}
	}
	if rangeSizes(pattern) > maxRanges {
		return size, whyRanges
	}
	return size, ""
}

// rangeSizes returns the number of characters in the ranges of a pattern. It also counts text that
// would be a range inside a class.
func rangeSizes(pattern string) (size int) {
	var first, last rune
	for i, dash := 0, false; i < len(pattern); {
		c, width := patternRune(pattern[i:])
		switch {
		case dash && c >= first:
			size += int(c - first)
		case dash && c > 0xD800: // the first may be half of a surrogate pair
			size += int(c - 0xD800)
		}
		if dash = pattern[i] == '-'; dash {
			first = last
		}
		last = c
		i += width
	}
	return size
}

// patternRune returns the first character of a pattern, and its length. Non-numeric escapes return
// 0.
func patternRune(s string) (c rune, width int) {
	if s[0] != '\\' || len(s) == 1 {
		return utf8.DecodeRuneInString(s)
	}
	if c, width = numberedRune(s); width > 0 {
		second, more := numberedRune(s[width:])
		if pair := utf16.DecodeRune(c, second); more > 0 && pair != utf8.RuneError {
			return pair, width + more
		}
		return c, width
	}
	_, width = utf8.DecodeRuneInString(s[1:])
	return 0, 1 + width
}

// numberedRune returns the character of the numeric escape at the start of s, and the length of the
// escape; 0 if there is none.
func numberedRune(s string) (c rune, width int) {
	digits := ""
	switch {
	case strings.HasPrefix(s, `\u{`):
		digits, _, _ = strings.Cut(s[3:], "}")
		width = len(digits) + 4
	case strings.HasPrefix(s, `\u`):
		digits, width = s[2:min(6, len(s))], 6
	case strings.HasPrefix(s, `\x`):
		digits, width = s[2:min(4, len(s))], 4
	}
	if digits = strings.TrimLeft(digits, "0"); len(digits) > 6 { // errors would copy it
		return 0, 0
	}
	n, err := strconv.ParseUint("0"+digits, 16, 32)
	if err != nil || n > utf8.MaxRune || width > len(s) {
		return 0, 0
	}
	return rune(n), width
}

// repetitions returns the largest number in the braces at the start of s, from 1 to 10,000.
func repetitions(s string) int {
	limit, n := 1, 0
	for i := range len(s) {
		c := s[i]
		if c != ',' && (c < '0' || c > '9') {
			break
		}
		if c == ',' {
			n = 0
			continue
		}
		n = min(10_000, n*10+int(c-'0'))
		limit = max(limit, n)
	}
	return limit
}
