package scripting

import "unicode/utf8"

// importState says how much of an import declaration was read.
type importState int

const (
	importNone  importState = iota
	importOpen              // up to the name of the file
	importNamed             // the name of the file, so that attributes may follow
	importWith              // the word with, so that their brackets follow
)

// imports finds the import declarations of a text, which may stand at its top
// level only, and refuses import(), which could load what no revision knows.
func (g *gate) imports(t lexeme) {
	top := len(g.levels) == 0
	switch {
	case t.kind == tokenKeyword && t.text == "import":
		if !top {
			g.fail(t.start, t.end, "import may not stand here", "imports stand at the top level of a body, outside of all brackets")
			return
		}
		if g.unnamed(); g.err != nil {
			return
		}
		g.modules = append(g.modules, module{start: t.start})
		if len(g.modules) > maxFiles {
			g.fail(t.start, t.end, "too many imports", "a body may have 200 of them")
		}
		g.importing = importOpen
	case g.importing == importOpen && g.last.text == "import" && (t.text == "(" || t.text == "."):
		g.fail(g.last.start, g.last.end, "import() and import.meta do not exist here", `write import { name } from "./file.js" instead`)
	case g.importing == importOpen && top && t.kind == tokenOperand && (t.text[0] == '"' || t.text[0] == '\''):
		g.extend(t, importNamed)
	case g.importing == importNamed && t.text == "with" && !t.newline:
		g.extend(t, importWith)
	case g.importing == importWith && top && t.text == "}":
		g.extend(t, importNone)
	case g.importing == importNamed:
		if t.kind == tokenSemicolon {
			g.extend(t, importNone)
		}
		g.importing = importNone
	}
}

// unnamed refuses a declaration that ended without the name of a file.
func (g *gate) unnamed() {
	if g.importing == importOpen {
		start := g.modules[len(g.modules)-1].start
		g.fail(start, start+len("import"), "this import names no file", `write import { name } from "./file.js"`)
	}
}

func (g *gate) extend(t lexeme, state importState) {
	g.modules[len(g.modules)-1].end = t.end
	g.importing = state
}

// invalidUTF8 returns the place of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return i
		}
	}
	return -1
}
