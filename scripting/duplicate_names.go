package scripting

// The bounds of names that are declared again. All declarations but the first
// are mistakes, and for each of them the compiler walks back through the whole
// body to the first.
const (
	maxTwins      = 50  // declarations of one name between two brackets, and assignments to a constant
	maxParameters = 100 // places of one name in the parameters of a function
	maxLabels     = 50  // labels of one statement, which are compared pairwise
)

// declared counts the token when it declares a name, or might.
func (g *gate) declared(t lexeme) {
	switch {
	case t.member || t.kind != tokenWord && t.text != `"__proto__"` && t.text != "'__proto__'":
		return
	case introduces(g.before, g.last) || t.text[0] == '#' || g.now.names.pattern && g.listed():
		g.declare(t)
	case g.last.text == "var" && !g.last.member:
		g.hoist(t)
	case g.last.kind == tokenComma && g.now.names.list:
		g.declare(t)
	case t.text == "__proto__" || t.kind == tokenOperand:
		t.text = "__proto__"
		g.declare(t)
	case len(g.levels) > 0 && g.listed():
		g.now.names.count(t.text, 1)
	}
}

// listed reports whether what comes next may be the name of a parameter, or
// one in a pattern.
func (g *gate) listed() bool {
	switch g.last.text {
	case "...", ":", "as", "type", "public", "private", "protected", "readonly", "override":
		return true
	}
	return g.last.kind == tokenComma || g.last.kind == tokenOpen
}

// introduces reports whether the name of something that can be declared only
// once stands behind the two tokens.
func introduces(before, last lexeme) bool {
	if last.member {
		return false
	}
	switch last.text {
	case "let", "const", "class", "enum", "import":
		return true
	case "function":
		return before.text == "async"
	case "*":
		return before.text == "function"
	}
	return false
}

func (g *gate) declare(t lexeme) {
	if g.now.names.count(t.text, 1) > maxTwins {
		g.twins(t)
	}
	g.now.names.bind(t.text, g.last.text == "const" || g.last.text == "import")
}

// hoist counts a var, which may stand anywhere below what it conflicts with.
func (g *gate) hoist(t lexeme) {
	if g.vars == nil {
		g.vars = map[string]int{}
	}
	if g.vars[t.text]++; g.vars[t.text] <= maxTwins {
		return
	}
	if _, bound := g.bound(t.text); bound {
		g.twins(t)
	}
}

// assigned counts assignments to names that are constants.
func (g *gate) assigned(t lexeme) {
	name := g.last
	if step(g.last.text) {
		name = t
	} else if !step(t.text) && !assigns(t.text) {
		return
	}
	if name.kind != tokenWord || name.member || name == g.last && introduces(lexeme{}, g.before) {
		return
	}
	if constant, _ := g.bound(name.text); !constant {
		return
	}
	g.count(name, &g.constants, maxTwins, "too many assignments to constants", "declare what is assigned to with let")
}

// bound reports whether a name is surely declared here or further out, and
// whether the innermost such declaration makes it a constant.
func (g *gate) bound(name string) (constant, ok bool) {
	if constant, ok = g.now.names.bound[name]; ok {
		return constant, ok
	}
	for i := len(g.levels) - 1; i >= 0; i-- {
		if constant, ok = g.levels[i].names.bound[name]; ok {
			return constant, ok
		}
	}
	return false, false
}

func step(operator string) bool { return operator == "++" || operator == "--" }

// assigns reports whether an operator is =, += or their like.
func assigns(operator string) bool {
	switch operator {
	case "==", "===", "!=", "!==", "<=", ">=":
		return false
	}
	return operator != "" && operator[len(operator)-1] == '='
}

func (g *gate) twins(t lexeme) {
	g.fail(t.start, t.end, "too many declarations of one name", "a name can be declared once; rename or remove the others")
}

// names are the names that are declared, or might be, on one level.
type names struct {
	counts  map[string]int
	bound   map[string]bool // what is surely declared; true: as a constant
	most    int             // the largest count here, and in all brackets that closed here
	pattern bool            // the bracket belongs to a pattern that declares, or to an import
	list    bool            // the statement is one of let, const or var
}

func (n *names) count(name string, times int) int {
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	n.counts[name] += times
	n.most = max(n.most, n.counts[name])
	return n.counts[name]
}

func (n *names) bind(name string, constant bool) {
	if n.bound == nil {
		n.bound = map[string]bool{}
	}
	n.bound[name] = constant
}

// declares reports whether the token is followed by a list of names.
func declares(t lexeme) bool {
	return !t.member && (t.text == "let" || t.text == "const" || t.text == "var")
}

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
