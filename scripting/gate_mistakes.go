package scripting

// slips are what the gate keeps to count mistakes that two tokens do not show.
type slips struct {
	// getter is where the parenthesis of a getter begins, and written where
	// the member of a namespace ends that may be assigned to.
	getter, written int
	// namespaces are the names of import * as name that stand for nothing else.
	namespaces map[string]bool
}

// mistaken counts mistakes that both compilers go on behind, and for each of
// which one walks back through the body.
func (g *gate) mistaken(t lexeme) {
	g.namespace(t)
	switch {
	case g.getter > 0 && g.last.start == g.getter && t.text != ")" && t.text != "this":
		g.mistake(t, "a getter takes no parameters")
	case t.text == "(" && g.before.text == "get" && !g.before.member && g.last.kind != tokenOperator && !g.last.newline:
		g.getter = t.start
	case g.mixes(t):
		g.mistake(t, "?? stands beside || or && in parentheses only")
	case len(g.levels) == 0 && g.before.kind == tokenSemicolon && isLiteral(g.last) && assigns(t.text):
		g.mistake(t, "nothing can be assigned to a number or a string")
	}
}

func (g *gate) mistake(t lexeme, detail string) {
	g.count(t, &g.mistakes, maxMistakes, "too many mistakes", detail)
}

// mixes reports whether the operator and one before it in the same expression
// may not stand side by side.
func (g *gate) mixes(t lexeme) bool {
	switch {
	case t.newline || t.text == "?" || t.text == ":" || t.text == "=>":
		g.now.coalesces, g.now.connects = false, false
	case t.text == "??":
		g.now.coalesces = true
	case t.text == "||" || t.text == "&&":
		g.now.connects = true
	}
	if !g.now.coalesces || !g.now.connects {
		return false
	}
	g.now.coalesces, g.now.connects = false, false
	return true
}

// isLiteral reports whether the token is a number or a string.
func isLiteral(t lexeme) bool {
	return t.kind == tokenOperand && (t.text[0] == '"' || t.text[0] == '\'' || t.text[0] >= '0' && t.text[0] <= '9')
}

// namespace counts assignments to members of import * as name. A name that
// stands anywhere without a member behind it may be declared there again.
func (g *gate) namespace(t lexeme) {
	switch {
	case g.importing == importOpen && t.kind == tokenWord && g.last.text == "as" && g.before.text == "*":
		if g.namespaces == nil {
			g.namespaces = map[string]bool{}
		}
		g.namespaces[t.text] = true
		g.now.names.bind(t.text, true)
	case len(g.namespaces) == 0 || g.importing == importOpen:
	case t.member && g.last.text == "." && !g.before.member && g.namespaces[g.before.text]:
		g.written = t.end
	case g.written > 0 && g.last.end == g.written && (assigns(t.text) || step(t.text)):
		g.count(g.last, &g.constants, maxTwins, "too many assignments to constants", "what is imported cannot be changed")
	case !g.last.member && t.text != ".":
		delete(g.namespaces, g.last.text)
	}
}

// maxMistakes bounds how often a body may break a rule that is cheap to see.
// For each breach one compiler walks back through the body.
const maxMistakes = 50

// strict counts what strict mode forbids where it is cheap to see.
func (g *gate) strict(t lexeme) {
	switch {
	case g.last.member || g.before.member:
	case t.text == "(" && g.last.text == "with",
		t.text == "function" && g.last.text == controlEnd,
		t.kind == tokenWord && !t.member && t.text == "eval",
		g.before.text == "delete" && g.last.kind == tokenWord && !selects(t):
		g.count(t, &g.mistakes, maxMistakes, "too much here breaks the rules of strict mode",
			"with, eval, delete of a variable, and functions as the statement of an if do not exist.")
	}
}

// selects reports whether the token goes on with a member of what is before it.
func selects(t lexeme) bool {
	switch t.text {
	case ".", "?.", "[", "(", "!":
		return true
	}
	return t.text != "" && t.text[0] == '`'
}
