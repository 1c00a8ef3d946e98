package scripting

import "strings"

// blame finds the bracket that is wrong where brackets do not match at the end
// of the text, or where a line begins with one that closes another than it
// should: the outermost of those that are left open.
func (g *gate) blame() {
	wrong := 0
	switch {
	case g.err == nil && len(g.braces) == 0:
		return
	case g.err == nil:
	case !g.err.unmatched || !beginsLine(g.src, g.err.start):
		return
	default:
		for wrong = len(g.braces) - 1; wrong >= 0 && closing(g.braces[wrong].kind) != g.src[g.err.start]; {
			wrong--
		}
		if wrong++; wrong == 0 {
			return
		}
	}
	g.err = nil
	g.neverClosed(g.braces[wrong])
}

// adrift refuses a semicolon inside of ( or [, and a statement there at the
// beginning of a line: the bracket was never closed.
func (g *gate) adrift(t lexeme) {
	n := len(g.braces)
	if n == 0 || g.braces[n-1].kind != '(' && g.braces[n-1].kind != '[' {
		return
	}
	control := g.braces[n-1].control
	switch {
	case t.kind == tokenSemicolon && !control:
	case t.kind != tokenKeyword || !t.newline || !commands(t.text):
		return
	case control && g.last.kind == tokenOpen, g.last.text == "as", g.ts && (g.last.text == "<" || g.last.kind == tokenComma):
		return // for (const …), as const, <const T>
	}
	for n > 1 && (g.braces[n-2].kind == '(' || g.braces[n-2].kind == '[') {
		n--
	}
	g.neverClosed(g.braces[n-1])
}

// neverClosed refuses a text because of a bracket.
func (g *gate) neverClosed(open bracket) {
	g.fail(open.start, open.start+1, "this "+opening(open.kind)+" is never closed", "add the "+string(closing(open.kind))+" that closes it")
}

// beginsLine reports whether only white space precedes an offset on its line.
func beginsLine(text string, offset int) bool {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	return strings.TrimSpace(text[start:offset]) == ""
}

// commands reports whether a word at the start of a line can only begin a statement.
func commands(word string) bool {
	switch word {
	case "const", "let", "var", "if", "for", "while", "do", "switch", "try", "return", "throw", "break", "continue", "import", "export", "debugger":
		return true
	}
	return false
}
