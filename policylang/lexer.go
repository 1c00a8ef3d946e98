package policylang

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEOF tokenKind = iota
	tokenIdent
	tokenNumber
	tokenString
	tokenOperator
)

// token is a token of an expression, as a byte range.
type token struct {
	kind       tokenKind
	start, end int
}

// signs are all operators of CEL, longest first.
var signs = [...]string{
	"&&", "||", "==", "!=", "<=", ">=",
	"(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*", "/", "%", "<", ">", "!",
}

// lexer splits an expression into tokens, in one pass and without recursion. It implements
// CEL's lexical rules but not its grammar.
type lexer struct {
	src string
	pos int
}

// next returns the token at the position of the lexer and advances. If the issue is not nil, it
// describes the bytes of the token.
func (l *lexer) next() (token, *syntaxIssue) {
	l.skipSpace()
	start := l.pos
	if start >= len(l.src) {
		return token{tokenEOF, start, start}, nil
	}
	c := l.src[start]
	switch {
	case c == '"' || c == '\'':
		return l.quoted(start, false)
	case isLetter(c):
		return l.word(start)
	case isDigit(c), c == '.' && start+1 < len(l.src) && isDigit(l.src[start+1]):
		return l.number(start), nil
	case c == '`':
		return l.escaped(start)
	}
	for _, op := range signs {
		if strings.HasPrefix(l.src[start:], op) {
			l.pos += len(op)
			return token{tokenOperator, start, l.pos}, nil
		}
	}
	return l.unexpectedChar(start)
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			l.pos++
		case strings.HasPrefix(l.src[l.pos:], "//"):
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				l.pos = len(l.src)
				return
			}
			l.pos += end
		default:
			return
		}
	}
}

// word reads an identifier, or the prefix of a string such as r"...".
func (l *lexer) word(start int) (token, *syntaxIssue) {
	for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
		l.pos++
	}
	if l.pos < len(l.src) && (l.src[l.pos] == '"' || l.src[l.pos] == '\'') {
		switch strings.ToLower(l.src[start:l.pos]) {
		case "r", "br", "rb":
			return l.quoted(start, true)
		case "b":
			return l.quoted(start, false)
		}
	}
	return token{tokenIdent, start, l.pos}, nil
}

// quoted reads a string. The lexer is at its first quote.
func (l *lexer) quoted(start int, raw bool) (token, *syntaxIssue) {
	quote := l.src[l.pos : l.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(l.src[l.pos:], triple) {
		quote = triple
	}
	l.pos += len(quote)
	for l.pos < len(l.src) {
		switch {
		case strings.HasPrefix(l.src[l.pos:], quote):
			l.pos += len(quote)
			return token{tokenString, start, l.pos}, nil
		case l.src[l.pos] == '\\' && !raw:
			l.pos = min(l.pos+2, len(l.src))
		case l.src[l.pos] == '\n' && len(quote) == 1:
			return l.unterminated(start)
		default:
			l.pos++
		}
	}
	return l.unterminated(start)
}

func (l *lexer) unterminated(start int) (token, *syntaxIssue) {
	return token{tokenString, start, l.pos}, &syntaxIssue{"this string has no end", "close it on the same line with the quote that opens it"}
}

// number reads more than CEL's numbers; the parser validates them.
func (l *lexer) number(start int) token {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		exponent := (c == '+' || c == '-') && (l.src[l.pos-1]|0x20) == 'e' && !strings.HasPrefix(l.src[start:], "0x")
		if !isDigit(c) && !isLetter(c) && c != '.' && !exponent {
			break
		}
		l.pos++
	}
	return token{tokenNumber, start, l.pos}
}

// escaped reads a field name in backticks.
func (l *lexer) escaped(start int) (token, *syntaxIssue) {
	end := strings.IndexAny(l.src[start+1:], "`\n")
	if end < 0 || l.src[start+1+end] == '\n' {
		l.pos = len(l.src)
		return token{tokenIdent, start, l.pos}, &syntaxIssue{"this name has no closing backtick", "close it, as in args.`content-type`"}
	}
	l.pos = start + end + 2
	return token{tokenIdent, start, l.pos}, nil
}

// unexpectedChar reports a character that starts no token.
func (l *lexer) unexpectedChar(start int) (token, *syntaxIssue) {
	r, size := utf8.DecodeRuneInString(l.src[start:])
	l.pos += size
	tok := token{tokenOperator, start, l.pos}
	switch r {
	case '=':
		if two := l.src[:start]; strings.HasSuffix(two, "==") || strings.HasSuffix(two, "!=") {
			sign := two[start-2:]
			return token{tokenOperator, start - 2, l.pos}, &syntaxIssue{"there is no operator " + sign + "=", "write " + sign}
		}
		return tok, &syntaxIssue{"a single = is not an operator", "write == to compare"}
	case '&':
		return tok, &syntaxIssue{"a single & is not an operator", "write && for \"and\""}
	case '|':
		return tok, &syntaxIssue{"a single | is not an operator", "write || for \"or\""}
	case utf8.RuneError:
		return tok, &syntaxIssue{"this is not valid UTF-8", "save the file as UTF-8"}
	}
	return tok, &syntaxIssue{"unexpected character " + quote(string(r)), "remove it, or put text in quotes"}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Limits of an expression. CEL's parser and checker are recursive and slower than linear, so
// larger expressions never reach them.
const (
	maxBytes = 16 << 10
	// maxTokens counts all tokens. maxParts excludes literals and commas, because a list of
	// values may be long.
	maxTokens   = 2000
	maxParts    = 600
	maxNesting  = 24
	maxPrefixes = 8
	maxChoices  = 24
)

// syntaxIssue is an error without a position.
type syntaxIssue struct {
	summary, detail string
}

// checkLimits splits an expression into tokens, in linear time, and rejects expressions that
// would be too expensive for CEL's parser. An issue describes the last token.
func checkLimits(src string) ([]token, *syntaxIssue) {
	if len(src) > maxBytes {
		return []token{{tokenEOF, 0, 0}}, tooMuch("is longer than", maxBytes, "bytes")
	}
	if !utf8.ValidString(src) {
		return []token{{tokenEOF, 0, 0}}, &syntaxIssue{"the expression is not valid UTF-8", "save the file as UTF-8"}
	}
	g := limitChecker{lexer: lexer{src: src}}
	for {
		tok, mistake := g.lexer.next()
		g.tokens = append(g.tokens, tok)
		if mistake == nil {
			mistake = g.add(tok)
		}
		if mistake != nil || tok.kind == tokenEOF {
			return g.tokens, mistake
		}
	}
}

type limitChecker struct {
	lexer    lexer
	tokens   []token
	open     []token
	parts    int
	prefixes int
	choices  int
}

func (g *limitChecker) text(t token) string { return g.lexer.src[t.start:t.end] }

func (g *limitChecker) add(tok token) *syntaxIssue {
	if len(g.tokens) > maxTokens {
		return tooMuch("has more than", maxTokens, "words and signs")
	}
	if tok.kind == tokenIdent || tok.kind == tokenOperator && g.text(tok) != "," {
		if g.parts++; g.parts > maxParts {
			return tooMuch("has more than", maxParts, "names and operators")
		}
	}
	switch tok.kind {
	case tokenEOF:
		return g.end()
	case tokenIdent:
		if mistake := g.otherLanguageWord(tok); mistake != nil {
			return mistake
		}
	case tokenOperator:
		return g.operator(tok)
	}
	g.prefixes = 0
	return nil
}

// otherLanguageWord reports operators of other languages.
func (g *limitChecker) otherLanguageWord(tok token) *syntaxIssue {
	afterOperand := len(g.tokens) > 1 && g.endsOperand(g.tokens[len(g.tokens)-2])
	switch word := g.text(tok); {
	case afterOperand && g.text(g.tokens[len(g.tokens)-2]) == "not":
		g.tokens = g.tokens[:len(g.tokens)-1]
		return &syntaxIssue{"there is no operator \"not\"", "write ! instead"}
	case word == "and" && afterOperand:
		return &syntaxIssue{"there is no operator \"and\"", "write && instead"}
	case word == "or" && afterOperand:
		return &syntaxIssue{"there is no operator \"or\"", "write || instead"}
	case afterOperand && word != "in":
		return &syntaxIssue{
			fmt.Sprintf("unexpected %s after %s", shorten(word), shorten(g.text(g.tokens[len(g.tokens)-2]))),
			"an operator is missing between the two, such as &&, || or ==",
		}
	}
	return nil
}

func (g *limitChecker) endsOperand(t token) bool {
	switch t.kind {
	case tokenNumber, tokenString:
		return true
	case tokenIdent:
		return g.text(t) != "in"
	}
	switch g.text(t) {
	case ")", "]", "}":
		return true
	}
	return false
}

func (g *limitChecker) operator(tok token) *syntaxIssue {
	text := g.text(tok)
	switch text {
	case "!", "-":
		if g.prefixes++; g.prefixes > maxPrefixes {
			return tooMuch("has a run of more than", maxPrefixes, "of the signs ! and -")
		}
		return nil
	case "(", "[", "{":
		if g.open = append(g.open, tok); len(g.open) > maxNesting {
			return tooMuch("nests brackets deeper than", maxNesting, "levels")
		}
	case ")", "]", "}":
		return g.close(text)
	case "?":
		if g.choices++; g.choices > maxChoices {
			return tooMuch("has more than", maxChoices, "of the signs ?")
		}
	}
	g.prefixes = 0
	return nil
}

func (g *limitChecker) close(text string) *syntaxIssue {
	g.prefixes = 0
	if len(g.open) == 0 {
		return &syntaxIssue{fmt.Sprintf("this %s has no opening bracket", quote(text)), "remove it, or add the opening bracket"}
	}
	opened := g.open[len(g.open)-1]
	g.open = g.open[:len(g.open)-1]
	if want := closer[g.text(opened)]; want != text {
		return &syntaxIssue{
			fmt.Sprintf("this %s does not close the %s before it", quote(text), quote(g.text(opened))),
			fmt.Sprintf("write %s", quote(want)),
		}
	}
	return nil
}

// end reports an open bracket at the position of the bracket.
func (g *limitChecker) end() *syntaxIssue {
	if len(g.tokens) == 1 {
		return &syntaxIssue{"the expression is empty", "write a CEL expression, such as args.amount <= 5000"}
	}
	if len(g.open) == 0 {
		return nil
	}
	opened := g.open[len(g.open)-1]
	g.tokens = append(g.tokens, opened)
	return &syntaxIssue{
		fmt.Sprintf("this %s is never closed", quote(g.text(opened))),
		fmt.Sprintf("add %s", quote(closer[g.text(opened)])),
	}
}

// closer maps opening brackets to closing brackets.
var closer = map[string]string{"(": ")", "[": "]", "{": "}"}

func tooMuch(what string, limit int, unit string) *syntaxIssue {
	return &syntaxIssue{
		fmt.Sprintf("the expression %s %d %s", what, limit, unit),
		"split it into several policies, or use a list",
	}
}

func quote(s string) string { return strconv.Quote(s) }
