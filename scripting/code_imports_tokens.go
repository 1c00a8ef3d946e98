package scripting

import "strings"

// importLexer cuts code into tokens, and knows what of Python stands in import statements:
// comments, and lines that a backslash joins.
type importLexer struct {
	lexer
	tokens   []lexeme
	comments []module
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
func importTokens(text string) (tokens []lexeme, comments []module) {
	l := importLexer{lexer: lexer{src: text}}
	for {
		before := l.prev
		t := l.next()
		if t.kind == tokenEnd {
			return l.tokens, l.comments
		}
		if l.joined {
			t.newline, l.joined = false, false
		}
		l.place(t)
		if l.state >= ofImport && t.kind == tokenWord && !l.python(&t) {
			l.prev = before
			continue
		}
		l.tokens = append(l.tokens, t)
	}
}

func (l *importLexer) place(t lexeme) {
	var before lexeme
	if n := len(l.tokens); n > 0 {
		before = l.tokens[n-1]
	}
	if t.newline && l.open == 0 || l.state == pastImport && !strings.HasPrefix(t.text, "#") {
		l.state = noImport
	}
	begins := len(l.tokens) == 0 || t.newline || before.kind == tokenSemicolon || before.text == "}" || before.text == "{"
	switch {
	case l.state == noImport && begins && t.kind == tokenKeyword && t.text == "import":
		l.state, l.from, l.open = ofImport, false, 0
	case l.state == noImport && begins && t.kind == tokenWord && t.text == "from":
		l.state, l.from, l.open = fromModule, true, 0
	case l.state == fromModule && t.text == "import":
		l.state = ofImport
	case l.state == fromModule && t.kind != tokenWord && strings.Trim(t.text, ".") != "":
		l.state = noImport
	case l.state == ofImport && t.kind == tokenOpen:
		l.opens(before)
	case l.state == ofImport && t.kind == tokenClose && l.open > 0:
		l.open--
	case l.state == ofImport && t.kind == tokenSemicolon:
		l.state = pastImport
	case l.state == ofImport && t.text == "." && before.text == "import":
		l.state = noImport
	}
}

// opens notes a bracket in an import statement: in from x import (…) it may hold comments.
func (l *importLexer) opens(before lexeme) {
	if l.open == 0 && (!l.from || before.text != "import") {
		l.state = noImport
		return
	}
	l.open++
}

// python cuts what begins a comment, or joins lines, off the end of a word. It reports
// whether anything of the word is left.
func (l *importLexer) python(t *lexeme) bool {
	at := strings.IndexAny(t.text, `#\`)
	if at < 0 {
		return true
	}
	from, rest := t.start+at, l.src[t.start+at:]
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
		l.comments = append(l.comments, module{from, from + length})
	}
	l.at = from + length
	t.end, t.text = from, t.text[:at]
	return at > 0
}
