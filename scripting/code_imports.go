package scripting

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/clip"
)

// maxRequired bounds the names of one declaration that call require.
const maxRequired = 100

// maxShownImport bounds the bytes of an import that a message repeats.
const maxShownImport = 200

// ImportRemoved is the code of the warning that an import of code was left out.
const ImportRemoved = "import-removed"

// leftOut is the search for the import statements of code: those of JavaScript,
// calls of require that are the whole of a declaration, and those of Python. It
// works on tokens, so that it finds none in strings, templates, comments and
// regular expressions.
type leftOut struct {
	tokens []lexeme
	at     int
	// removed are the statements that were found.
	removed []module
	// fence is the one around all of the code, nil where there is none.
	fence *fence
	// names are the words in them, among which are the names that they declare.
	names map[string]bool
}

// withoutImports returns a text in which import statements are empty ones, and
// what was found. What cannot be cut into tokens is left to others to tell.
func withoutImports(text string) (string, *leftOut) {
	found := &leftOut{names: map[string]bool{}}
	if len(text) > MaxBody || !strings.Contains(text, "import") && !strings.Contains(text, "require") {
		return text, found
	}
	outside := outerTokens(text)
	found.tokens = outside
	for found.at = range outside {
		if n := len(found.removed); n > 0 && outside[found.at].start < found.removed[n-1].end {
			continue
		}
		if end := found.statement(); end > found.at {
			found.remove(end)
		}
	}
	var b strings.Builder
	from := 0
	for _, m := range found.removed {
		b.WriteString(text[from:m.start])
		b.WriteString(emptied(text[m.start:m.end]))
		from = m.end
	}
	b.WriteString(text[from:])
	return b.String(), found
}

// outerTokens cuts a text into tokens, as far as that goes, but for those within
// brackets where no import has any.
func outerTokens(text string) []lexeme {
	l := lexer{src: text}
	var tokens []lexeme
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		if len(l.braces) <= 1 {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// emptied returns an empty statement of as many bytes, with the same ends of lines.
func emptied(s string) string {
	out := []byte(s)
	out[0] = ';'
	for i, c := range out[1:] {
		if c != '\n' && c != '\r' {
			out[i+1] = ' '
		}
	}
	return string(out)
}

// token returns the token so many behind the first, an empty one behind the last.
func (i *leftOut) token(n int) lexeme {
	if n >= len(i.tokens) {
		return lexeme{kind: tokenEnd, newline: true}
	}
	return i.tokens[n]
}

// statement returns where the import statement ends that begins at the present
// token: the position behind its last, or that of the token where none begins.
func (i *leftOut) statement() int {
	t := i.token(i.at)
	begins := i.at == 0 || t.newline || i.token(i.at-1).kind == tokenSemicolon || i.token(i.at-1).text == "}"
	switch {
	case !begins || t.member:
		return i.at
	case t.kind == tokenKeyword && t.text == "import":
		if end := i.ofJavaScript(i.at + 1); end > 0 {
			return i.ended(end)
		}
		return i.ended(i.modulesOfPython(i.at + 1))
	case t.kind == tokenWord && t.text == "from":
		return i.ended(i.fromOfPython(i.at + 1))
	case declares(t):
		return i.ended(i.requires(i.at + 1))
	}
	return i.at
}

// ended returns the end of a statement, with its semicolon, if it ends there: on
// its line, or with that. 0 stands for none.
func (i *leftOut) ended(end int) int {
	t := i.token(end)
	switch {
	case end == 0:
		return i.at
	case t.kind == tokenSemicolon && !t.newline:
		return end + 1
	case t.newline || t.kind == tokenEnd:
		return end
	}
	return i.at
}

// ofJavaScript returns where "y", x from "y", or x = require("y") ends; 0 where
// there is none of them.
func (i *leftOut) ofJavaScript(at int) int {
	if isString(i.token(at)) {
		return i.attributes(at + 1)
	}
	if i.token(at).kind == tokenWord && i.token(at+1).text == "=" {
		return i.requires(at)
	}
	for open := false; ; at++ {
		switch t := i.token(at); {
		case t.text == "from" && isString(i.token(at+1)):
			if open {
				return 0
			}
			return i.attributes(at + 2)
		case t.text == "{" && !open, t.text == "}" && open:
			open = !open
		case t.kind == tokenWord, t.kind == tokenComma, t.text == "*", t.text == "default":
		case isString(t) && i.token(at+1).text == "as":
		default:
			return 0
		}
	}
}

// attributes returns the position behind with { … }, which may be missing.
func (i *leftOut) attributes(at int) int {
	if t := i.token(at); t.newline || t.text != "with" && t.text != "assert" || i.token(at+1).text != "{" {
		return at
	}
	for at += 2; i.token(at).kind != tokenEnd; at++ {
		if i.token(at).text == "}" {
			return at + 1
		}
	}
	return 0
}

// requires returns where declarations end that call require and nothing else.
func (i *leftOut) requires(at int) int {
	for n := 0; n < maxRequired; n++ {
		if at = i.target(at); at == 0 || i.token(at).text != "=" || i.token(at+1).text != "require" ||
			i.token(at+2).text != "(" || !isString(i.token(at+3)) || i.token(at+4).text != ")" {
			return 0
		}
		if at += 5; i.token(at).kind != tokenComma {
			return at
		}
		at++
	}
	return 0
}

// target returns the position behind a name or a pattern in braces.
func (i *leftOut) target(at int) int {
	if i.token(at).kind == tokenWord {
		return at + 1
	}
	if i.token(at).text != "{" {
		return 0
	}
	for at++; i.token(at).kind != tokenEnd; at++ {
		switch t := i.token(at); {
		case t.text == "}":
			return at + 1
		case t.kind == tokenWord, t.kind == tokenComma, t.text == ":", t.text == "default":
		default:
			return 0
		}
	}
	return 0
}

// remove notes the statement up to a token.
func (i *leftOut) remove(end int) {
	for _, t := range i.tokens[i.at:end] {
		if t.kind == tokenWord {
			i.names[t.text] = true
		}
	}
	i.removed = append(i.removed, module{i.tokens[i.at].start, i.tokens[end-1].end})
}

// isString reports whether the token is a string.
func isString(t lexeme) bool {
	return t.kind == tokenOperand && (t.text[0] == '"' || t.text[0] == '\'')
}

// tellRemoved tells what was left out of code.
func (i *leftOut) tellRemoved(text diag.Text) diag.List {
	list := i.fence.tellRemoved(text)
	for _, m := range i.removed[:min(len(i.removed), maxReports)] {
		shown := clip.Start(strings.Join(strings.Fields(text.Body()[m.start:m.end]), " "), maxShownImport)
		list = append(list, diag.Diagnostic{
			Severity: diag.Warning, Code: ImportRemoved, Range: text.Range(m.start, m.end),
			Summary: fmt.Sprintf("import statements are not needed: removed line %d: %s", text.Pos(m.start).Line, diag.Printable(shown)),
			Detail:  "the tools are there already, and nothing else can be imported",
		})
	}
	return list
}
