package compiler

import (
	"strings"

	"github.com/mcpd/mcpd/internal/js/syntax"
)

// importLexer cuts code into tokens, and knows what of Python stands in import statements:
// comments, and lines that a backslash joins.
type importLexer struct {
	syntax.Lexer
	tokens   []syntax.Token
	comments []syntax.Span
	state    importLine
	// from says that the statement begins with that word.
	from bool
	// open is how many brackets of the statement are open, and joined says that the next
	// token is on the same line as the one before.
	open   int
	joined bool
}

// importLine is where in a line of Python a token stands.
type importLine int

const (
	noImport   importLine = iota
	fromModule            // behind from
	ofImport              // behind import
	pastImport            // behind the semicolon
)

// importTokens cuts a text into tokens, as far as that goes, but for comments of Python in
// import statements.
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
		l.place(t)
		if l.state >= ofImport && t.Kind == syntax.Word && !l.python(&t) {
			l.Prev = before
			continue
		}
		l.tokens = append(l.tokens, t)
	}
}

func (l *importLexer) place(t syntax.Token) {
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

// opens notes a bracket in an import statement: in from x import (…) it may hold comments.
func (l *importLexer) opens(before syntax.Token) {
	if l.open == 0 && (!l.from || before.Text != "import") {
		l.state = noImport
		return
	}
	l.open++
}

// python cuts what begins a comment, or joins lines, off the end of a word. It reports
// whether anything of the word is left.
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
