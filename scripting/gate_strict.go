package scripting

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
