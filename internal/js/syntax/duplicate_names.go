package syntax

// Limits of repeated declarations. All declarations but the first are errors, and for each of them
// the compiler scans the whole script for the first.
const (
	maxDuplicates = 50  // declarations of one name between two brackets, and assignments to a constant
	maxParameters = 100 // occurrences of one name in the parameters of a function
	maxLabels     = 50  // labels of one statement, which are compared pairwise
)

// declared counts a token that declares a name, or might.
func (g *checker) declared(t Token) {
	switch {
	case t.Member || t.Kind != Word && t.Text != `"__proto__"` && t.Text != "'__proto__'":
		return
	case introduces(g.before, g.last) || t.Text[0] == '#' || g.now.names.pattern && g.inNameList():
		g.declare(t)
	case g.last.Text == "var" && !g.last.Member:
		g.declareVar(t)
	case g.last.Kind == Comma && g.now.names.list:
		g.declare(t)
	case t.Text == "__proto__" || t.Kind == Operand:
		t.Text = "__proto__"
		g.declare(t)
	case len(g.levels) > 0 && g.inNameList():
		g.now.names.count(t.Text, 1)
	}
}

// inNameList reports whether the next token may be the name of a parameter, or a name in a pattern.
func (g *checker) inNameList() bool {
	switch g.last.Text {
	case "...", ":", "as", "type", "public", "private", "protected", "readonly", "override":
		return true
	}
	return g.last.Kind == Comma || g.last.Kind == Open
}

// introduces reports whether a name follows the two tokens that can be declared only once.
func introduces(before, last Token) bool {
	if last.Member {
		return false
	}
	switch last.Text {
	case "let", "const", "class", "enum", "import":
		return true
	case "function":
		return before.Text == "async"
	case "*":
		return before.Text == "function"
	}
	return false
}

func (g *checker) declare(t Token) {
	if g.now.names.count(t.Text, 1) > maxDuplicates {
		g.failDuplicates(t)
	}
	g.now.names.bind(t.Text, g.last.Text == "const" || g.last.Text == "import")
}

// declareVar counts a var, which may be anywhere below a conflicting declaration.
func (g *checker) declareVar(t Token) {
	if g.vars == nil {
		g.vars = map[string]int{}
	}
	if g.vars[t.Text]++; g.vars[t.Text] <= maxDuplicates {
		return
	}
	if _, bound := g.bound(t.Text); bound {
		g.failDuplicates(t)
	}
}

// assigned counts assignments to constants.
func (g *checker) assigned(t Token) {
	name := g.last
	if step(g.last.Text) {
		name = t
	} else if !step(t.Text) && !Assigns(t.Text) {
		return
	}
	if name.Kind != Word || name.Member || name == g.last && introduces(Token{}, g.before) {
		return
	}
	if constant, _ := g.bound(name.Text); !constant {
		return
	}
	g.count(name, &g.constants, maxDuplicates, "too many assignments to constants", "declare what is assigned to with let")
}

// bound reports whether a name is certainly declared here or in an outer scope, and whether the
// innermost such declaration makes it a constant.
func (g *checker) bound(name string) (constant, ok bool) {
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

// Assigns reports whether an operator is = or an assignment operator like +=.
func Assigns(operator string) bool {
	switch operator {
	case "==", "===", "!=", "!==", "<=", ">=":
		return false
	}
	return operator != "" && operator[len(operator)-1] == '='
}

func (g *checker) failDuplicates(t Token) {
	g.fail(t.Start, t.End, "too many declarations of one name", "a name can be declared once; rename or remove the others")
}

// declaredNames are the names that are declared, or might be, on one level.
type declaredNames struct {
	counts  map[string]int
	bound   map[string]bool // certain declarations; true for constants
	max     int             // largest count here, and in all brackets that closed here
	pattern bool            // the bracket belongs to a declaring pattern, or to an import
	list    bool            // the statement is a let, const or var
}

func (n *declaredNames) count(name string, times int) int {
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	n.counts[name] += times
	n.max = max(n.max, n.counts[name])
	return n.counts[name]
}

func (n *declaredNames) bind(name string, constant bool) {
	if n.bound == nil {
		n.bound = map[string]bool{}
	}
	n.bound[name] = constant
}

// Declares reports whether a list of names follows the token.
func Declares(t Token) bool {
	return !t.Member && (t.Text == "let" || t.Text == "const" || t.Text == "var")
}

// errorCounts counts errors that involve more than two tokens.
type errorCounts struct {
	// getter is the position of the parenthesis of a getter. written is the end of the member of a
	// namespace that may be assigned to.
	getter, written int
	// namespaces are the names of import * as name that are used for nothing else.
	namespaces map[string]bool
}

// checkErrors counts errors after which both compilers continue, and for each of which one of them
// scans the script backwards.
func (g *checker) checkErrors(t Token) {
	g.namespace(t)
	switch {
	case g.getter > 0 && g.last.Start == g.getter && t.Text != ")" && t.Text != "this":
		g.countError(t, "a getter takes no parameters")
	case t.Text == "(" && g.before.Text == "get" && !g.before.Member && g.last.Kind != Operator && !g.last.Newline:
		g.getter = t.Start
	case g.mixesCoalesce(t):
		g.countError(t, "?? beside || or && needs parentheses")
	case len(g.levels) == 0 && g.before.Kind == Semicolon && isLiteral(g.last) && Assigns(t.Text):
		g.countError(t, "nothing can be assigned to a number or a string")
	}
}

func (g *checker) countError(t Token, detail string) {
	g.count(t, &g.errors, maxErrors, "too many errors", detail)
}

// mixesCoalesce reports whether t and an earlier operator in the same expression must not be mixed
// without parentheses.
func (g *checker) mixesCoalesce(t Token) bool {
	switch {
	case t.Newline || t.Text == "?" || t.Text == ":" || t.Text == "=>":
		g.now.coalesces, g.now.connects = false, false
	case t.Text == "??":
		g.now.coalesces = true
	case t.Text == "||" || t.Text == "&&":
		g.now.connects = true
	}
	if !g.now.coalesces || !g.now.connects {
		return false
	}
	g.now.coalesces, g.now.connects = false, false
	return true
}

func isLiteral(t Token) bool {
	return t.Kind == Operand && (t.Text[0] == '"' || t.Text[0] == '\'' || t.Text[0] >= '0' && t.Text[0] <= '9')
}

// namespace counts assignments to members of import * as name. A name that is used without a member
// may be declared again.
func (g *checker) namespace(t Token) {
	switch {
	case g.importing == importOpen && t.Kind == Word && g.last.Text == "as" && g.before.Text == "*":
		if g.namespaces == nil {
			g.namespaces = map[string]bool{}
		}
		g.namespaces[t.Text] = true
		g.now.names.bind(t.Text, true)
	case len(g.namespaces) == 0 || g.importing == importOpen:
	case t.Member && g.last.Text == "." && !g.before.Member && g.namespaces[g.before.Text]:
		g.written = t.End
	case g.written > 0 && g.last.End == g.written && (Assigns(t.Text) || step(t.Text)):
		g.count(g.last, &g.constants, maxDuplicates, "too many assignments to constants", "what is imported cannot be changed")
	case !g.last.Member && t.Text != ".":
		delete(g.namespaces, g.last.Text)
	}
}

// maxErrors limits violations of rules that are cheap to check. For each of them one compiler scans
// the script backwards.
const maxErrors = 50

// strict counts violations of strict mode that are cheap to check.
func (g *checker) strict(t Token) {
	switch {
	case g.last.Member || g.before.Member:
	case t.Text == "(" && g.last.Text == "with",
		t.Text == "function" && g.last.Text == controlEnd,
		t.Kind == Word && !t.Member && t.Text == "eval",
		g.before.Text == "delete" && g.last.Kind == Word && !selects(t):
		g.count(t, &g.errors, maxErrors, "too much here breaks the rules of strict mode",
			"with, eval, delete of a variable, and functions as the statement of an if do not exist.")
	}
}

// selects reports whether the token continues with a member of the token before.
func selects(t Token) bool {
	switch t.Text {
	case ".", "?.", "[", "(", "!":
		return true
	}
	return t.Text != "" && t.Text[0] == '`'
}
