package compiler

import (
	"strings"

	"github.com/mcpd/mcpd/internal/js/syntax"
)

// importLexer splits code into tokens. It knows the Python syntax in import statements: comments,
// and lines joined by a backslash.
type importLexer struct {
	syntax.Lexer
	tokens   []syntax.Token
	comments []syntax.Span
	state    importLine
	// from is set if the statement starts with from.
	from bool
	// open is the number of open brackets in the statement. joined is set if the next token
	// continues the line of the last token.
	open   int
	joined bool
}

// importLine is the position in a line of Python.
type importLine int

const (
	noImport   importLine = iota
	fromModule            // after from
	ofImport              // after import
	pastImport            // after the semicolon
)

// importTokens splits a text into tokens, up to an error, without Python comments in import
// statements.
func importTokens(text string) (tokens []syntax.Token, comments []syntax.Span) {
	l := importLexer{Lexer: syntax.Lexer{Src: text}}
	for {
		before := l.Prev
		t := l.Next()
		if t.Kind == syntax.End {
			return l.tokens, l.comments
		}
		if l.joined {
			t.Newline, l.joined = false, false
		}
		l.track(t)
		if l.state >= ofImport && t.Kind == syntax.Word && !l.python(&t) {
			l.Prev = before
			continue
		}
		l.tokens = append(l.tokens, t)
	}
}

func (l *importLexer) track(t syntax.Token) {
	var before syntax.Token
	if n := len(l.tokens); n > 0 {
		before = l.tokens[n-1]
	}
	if t.Newline && l.open == 0 || l.state == pastImport && !strings.HasPrefix(t.Text, "#") {
		l.state = noImport
	}
	begins := len(l.tokens) == 0 || t.Newline || before.Kind == syntax.Semicolon || before.Text == "}" || before.Text == "{"
	switch {
	case l.state == noImport && begins && t.Kind == syntax.Keyword && t.Text == "import":
		l.state, l.from, l.open = ofImport, false, 0
	case l.state == noImport && begins && t.Kind == syntax.Word && t.Text == "from":
		l.state, l.from, l.open = fromModule, true, 0
	case l.state == fromModule && t.Text == "import":
		l.state = ofImport
	case l.state == fromModule && t.Kind != syntax.Word && strings.Trim(t.Text, ".") != "":
		l.state = noImport
	case l.state == ofImport && t.Kind == syntax.Open:
		l.opens(before)
	case l.state == ofImport && t.Kind == syntax.Close && l.open > 0:
		l.open--
	case l.state == ofImport && t.Kind == syntax.Semicolon:
		l.state = pastImport
	case l.state == ofImport && t.Text == "." && before.Text == "import":
		l.state = noImport
	}
}

// opens records a bracket in an import statement. In from x import (…) it may contain comments.
func (l *importLexer) opens(before syntax.Token) {
	if l.open == 0 && (!l.from || before.Text != "import") {
		l.state = noImport
		return
	}
	l.open++
}

// python removes the start of a comment, or a line continuation, from the end of a word. It reports
// whether anything of the word remains.
func (l *importLexer) python(t *syntax.Token) bool {
	at := strings.IndexAny(t.Text, `#\`)
	if at < 0 {
		return true
	}
	from, rest := t.Start+at, l.Src[t.Start+at:]
	length := strings.IndexAny(rest, "\r\n")
	if length < 0 {
		length = len(rest)
	}
	if rest[0] == '\\' {
		if strings.TrimRight(rest[1:length], " \t") != "" || length == len(rest) {
			return true
		}
		l.joined = true
	} else {
		l.comments = append(l.comments, syntax.Span{Start: from, End: from + length})
	}
	l.At = from + length
	t.End, t.Text = from, t.Text[:at]
	return at > 0
}
