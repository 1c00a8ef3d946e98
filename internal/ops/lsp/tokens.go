package lsp

import (
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/js/syntax"
)

// tokenKind classifies the tokens of code.
type tokenKind int

const (
	commentToken tokenKind = iota
	keywordToken
	wordToken
	numberToken
	stringToken
	signToken
)

// token is a token of code. Its offsets are offsets in the source.
type token struct {
	kind       tokenKind
	start, end int
	text       string
	// member is set if the word follows a dot.
	member bool
	// hole is set for the part of a template before ${.
	hole bool
}

// language is the language of code.
type language int

const (
	noCode language = iota
	javaScript
	typeScript
	cel
	sql
)

// isScript reports whether the code is a script.
func (l language) isScript() bool { return l == javaScript || l == typeScript }

// tokensOf splits the code in a range of a text into tokens, in one pass. complete is false if the
// code has an error that hides tokens.
func tokensOf(text string, start, end int, l language) (tokens []token, complete bool) {
	if l.isScript() {
		return scriptTokens(text, start, end, l == typeScript)
	}
	t := tokenizer{text: text[:end], at: start, language: l}
	for t.at < end {
		t.step()
	}
	return t.tokens, true
}

// scriptTokens reads the tokens with the lexer of the compiler, and the comments between them.
func scriptTokens(text string, start, end int, ts bool) (tokens []token, complete bool) {
	l := &syntax.Lexer{Src: text[:end], At: start, TypeScript: ts}
	last := start
	for {
		t := l.Next()
		if t.Kind == syntax.End {
			if l.Err != nil {
				return tokens, false
			}
			return comments(tokens, text, last, end), true
		}
		tokens = comments(tokens, text, last, t.Start)
		last = t.End
		kind := signToken
		switch c := text[t.Start]; {
		case t.Kind == syntax.Keyword:
			kind = keywordToken
		case t.Kind == syntax.Word:
			kind = wordToken
		case c == '"' || c == '\'' || c == '`' || t.Kind == syntax.Operand && c == '/', t.Kind == syntax.Open && t.End-t.Start > 1, t.Kind == syntax.Close && t.End-t.Start > 1:
			kind = stringToken
		case t.Kind == syntax.Operand:
			kind = numberToken
		}
		tokens = append(tokens, token{kind, t.Start, t.End, text[t.Start:t.End], t.Member, kind == stringToken && t.Kind == syntax.Open})
	}
}

// comments appends the comments in a range without tokens.
func comments(tokens []token, text string, start, end int) []token {
	for start < end {
		i := strings.IndexByte(text[start:end], '/')
		if i < 0 {
			break
		}
		start += i
		stop := end
		if strings.HasPrefix(text[start:end], "//") {
			stop = start + syntax.LineLength(text[start:end])
		} else if j := strings.Index(text[start:end], "*/"); j > 0 {
			stop = start + j + 2
		}
		tokens = append(tokens, token{kind: commentToken, start: start, end: stop, text: text[start:stop]})
		start = stop
	}
	return tokens
}

// tokenizer splits CEL or SQL into tokens, without its grammar.
type tokenizer struct {
	text     string
	at       int
	language language
	tokens   []token
}

// step reads a token or a blank.
func (t *tokenizer) step() {
	start, rest := t.at, t.text[t.at:]
	switch c := rest[0]; {
	case t.language == cel && strings.HasPrefix(rest, "//"), t.language == sql && strings.HasPrefix(rest, "--"):
		t.skipTo("\n", 2)
		t.add(commentToken, start)
	case t.language == sql && strings.HasPrefix(rest, "/*"):
		t.skipTo("*/", 2)
		t.at = min(t.at+2, len(t.text))
		t.add(commentToken, start)
	case c == '"' || c == '\'':
		t.quoted(c, false)
		t.add(stringToken, start)
	case isWordStart(c):
		t.word(start)
	case c >= '0' && c <= '9':
		for t.at < len(t.text) && (isWordByte(t.text[t.at]) && t.text[t.at] != '-' || t.text[t.at] == '.') {
			t.at++
		}
		t.add(numberToken, start)
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		t.at++
	default:
		t.at++
		t.add(signToken, start)
	}
}

func (t *tokenizer) add(kind tokenKind, start int) {
	member := kind == wordToken && len(t.tokens) > 0 && t.tokens[len(t.tokens)-1].text == "."
	t.tokens = append(t.tokens, token{kind: kind, start: start, end: t.at, text: t.text[start:t.at], member: member})
}

// skipTo moves to the next stop, or to the end.
func (t *tokenizer) skipTo(stop string, from int) {
	if i := strings.Index(t.text[t.at+from:], stop); i >= 0 {
		t.at += from + i
	} else {
		t.at = len(t.text)
	}
}

// quoted moves behind a string. Strings of SQL have no escapes except doubled quotes, which read as
// two strings.
func (t *tokenizer) quoted(quote byte, raw bool) {
	end := string(quote)
	if triple := strings.Repeat(end, 3); t.language == cel && strings.HasPrefix(t.text[t.at:], triple) {
		end = triple
	}
	t.at += len(end)
	for t.at < len(t.text) {
		switch {
		case strings.HasPrefix(t.text[t.at:], end):
			t.at += len(end)
			return
		case t.text[t.at] == '\\' && t.language == cel && !raw:
			t.at = min(t.at+2, len(t.text))
		default:
			t.at++
		}
	}
}

// word reads a name, or a string of CEL with a prefix such as r"…".
func (t *tokenizer) word(start int) {
	for t.at < len(t.text) && isWordByte(t.text[t.at]) && t.text[t.at] != '-' {
		t.at++
	}
	word := t.text[start:t.at]
	if t.language == cel && t.at < len(t.text) && (t.text[t.at] == '"' || t.text[t.at] == '\'') && slices.Contains([]string{"r", "b", "br", "rb"}, strings.ToLower(word)) {
		t.quoted(t.text[t.at], len(word) == 2 || strings.EqualFold(word, "r"))
		t.add(stringToken, start)
		return
	}
	kind := wordToken
	switch {
	case t.language == cel && slices.Contains(celKeywords, word), t.language == sql && slices.Contains(sqlKeywords, strings.ToUpper(word)):
		kind = keywordToken
	}
	t.add(kind, start)
}

var celKeywords = []string{"true", "false", "null", "in"}

// sqlKeywords are the words of statements that tools have.
var sqlKeywords = []string{
	"ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CONFLICT", "CROSS", "DELETE", "DESC", "DISTINCT", "DO", "ELSE", "END", "EXCEPT",
	"EXISTS", "FALSE", "FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INNER", "INSERT", "INTERSECT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT",
	"NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "RETURNING", "RIGHT", "SELECT", "SET", "THEN", "TRUE", "UNION", "UPDATE",
	"USING", "VALUES", "WHEN", "WHERE", "WITH",
}

// code is the code of an argument: the range of its text, without quotes and heredoc tags.
type code struct {
	language
	start, end int
	// literal is set if the text in the file is the code: it has no escapes and no templates.
	literal bool
}

// codeOf returns the code of an argument, if its value is a string or a heredoc.
func (s *source) codeOf(b *block, a *argument) (c code, ok bool) {
	value := s.text[a.value:a.valueEnd]
	c.language = languageOf(b, a.name, value)
	if c.language == noCode {
		return c, false
	}
	if strings.HasPrefix(value, `"`) {
		c.start, c.end = a.value+1, a.valueEnd
		if len(value) > 1 && strings.HasSuffix(value, `"`) {
			c.end--
		}
		c.literal = !strings.ContainsAny(s.text[c.start:c.end], "\\\n") && !strings.Contains(s.text[c.start:c.end], "${") && !strings.Contains(s.text[c.start:c.end], "%{")
		return c, true
	}
	if !strings.HasPrefix(value, "<<") {
		return c, false
	}
	first := strings.IndexByte(value, '\n')
	if first < 0 {
		return c, false
	}
	c.start, c.end = a.value+first+1, a.valueEnd
	tag := heredocTag(value)
	last := strings.LastIndexByte(value, '\n') + 1
	if strings.TrimSpace(value[last:]) == tag {
		c.end = max(c.start, a.value+last)
	}
	c.literal = slices.Contains([]string{"JS", "TS", "CEL", "SQL"}, tag) || !strings.Contains(value, "${") && !strings.Contains(value, "%{")
	return c, true
}

// heredocTag returns the tag of a value that starts with <<.
func heredocTag(value string) string {
	line, _, _ := strings.Cut(value, "\n")
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "<<"), "-"))
}

// languageOf returns the language of an argument with a value.
func languageOf(b *block, argument, value string) language {
	if argument == "reason" && b.kind == "policy" && strings.HasPrefix(value, "<<") && heredocTag(value) == "CEL" {
		return cel
	}
	for _, a := range b.grammar.Arguments() {
		if a.Name != argument || !a.Code {
			continue
		}
		switch {
		case a.Name == "query":
			return sql
		case a.Name != "run" && a.Name != "dry_run":
			return cel
		case strings.HasPrefix(value, "<<") && heredocTag(value) == "TS":
			return typeScript
		}
		return javaScript
	}
	return noCode
}
