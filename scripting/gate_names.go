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

// parametersOf looks at the parentheses that closed last, when the token says
// that they held the parameters of a function.
func (g *gate) parametersOf(t lexeme) {
	if g.closed > maxParameters && g.last.text == ")" && (t.text == "=>" || t.text == "{") {
		g.twins(t)
	}
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

// declarePattern declares the names of a pattern on the level around it.
func (g *gate) declarePattern(t lexeme, inner names) {
	for name, times := range inner.counts {
		if g.now.names.count(name, times) > maxTwins {
			g.twins(t)
		}
		g.now.names.bind(name, false)
	}
}

// declares reports whether the token is followed by a list of names.
func declares(t lexeme) bool {
	return !t.member && (t.text == "let" || t.text == "const" || t.text == "var")
}
