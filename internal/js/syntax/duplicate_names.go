package syntax

// Limits of repeated declarations. All declarations but the first are errors, and for each of them
// the compiler scans the whole script for the first.
const (
	maxDuplicates = 50  // declarations of one name between two brackets, and assignments to a constant
	maxParameters = 100 // occurrences of one name in the parameters of a function
	maxLabels     = 50  // labels of one statement, which are compared pairwise
)

// declared counts a token that declares a name, or might.
func (c *checker) declared(t Token) {
	switch {
	case t.Member || t.Kind != Word && t.Text != `"__proto__"` && t.Text != "'__proto__'":
		return
	case introduces(c.before, c.last) || t.Text[0] == '#' || c.now.names.pattern && c.inNameList():
		c.declare(t)
	case c.last.Text == "var" && !c.last.Member:
		c.declareVar(t)
	case c.last.Kind == Comma && c.now.names.list:
		c.declare(t)
	case t.Text == "__proto__" || t.Kind == Operand:
		t.Text = "__proto__"
		c.declare(t)
	case len(c.levels) > 0 && c.inNameList():
		c.now.names.count(t.Text, 1)
	}
}

// inNameList reports whether the next token may be the name of a parameter, or a name in a pattern.
func (c *checker) inNameList() bool {
	switch c.last.Text {
	case "...", ":", "as", "type", "public", "private", "protected", "readonly", "override":
		return true
	}
	return c.last.Kind == Comma || c.last.Kind == Open
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

func (c *checker) declare(t Token) {
	if c.now.names.count(t.Text, 1) > maxDuplicates {
		c.failDuplicates(t)
	}
	c.now.names.bind(t.Text, c.last.Text == "const" || c.last.Text == "import")
}

// declareVar counts a var, which may be anywhere below a conflicting declaration.
func (c *checker) declareVar(t Token) {
	if c.vars == nil {
		c.vars = map[string]int{}
	}
	if c.vars[t.Text]++; c.vars[t.Text] <= maxDuplicates {
		return
	}
	if _, bound := c.bound(t.Text); bound {
		c.failDuplicates(t)
	}
}

// assigned counts assignments to constants.
func (c *checker) assigned(t Token) {
	name := c.last
	if step(c.last.Text) {
		name = t
	} else if !step(t.Text) && !Assigns(t.Text) {
		return
	}
	if name.Kind != Word || name.Member || name == c.last && introduces(Token{}, c.before) {
		return
	}
	if constant, _ := c.bound(name.Text); !constant {
		return
	}
	c.count(name, &c.constants, maxDuplicates, "too many assignments to constants", "declare assigned variables with let")
}

// bound reports whether a name is certainly declared here or in an outer scope, and whether the
// innermost such declaration makes it a constant.
func (c *checker) bound(name string) (constant, ok bool) {
	if constant, ok = c.now.names.bound[name]; ok {
		return constant, ok
	}
	for i := len(c.levels) - 1; i >= 0; i-- {
		if constant, ok = c.levels[i].names.bound[name]; ok {
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

func (c *checker) failDuplicates(t Token) {
	c.fail(t.Start, t.End, "too many declarations of one name", "a name can be declared once; rename or remove the others")
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
func (c *checker) checkErrors(t Token) {
	c.namespace(t)
	switch {
	case c.getter > 0 && c.last.Start == c.getter && t.Text != ")" && t.Text != "this":
		c.countError(t, "a getter takes no parameters")
	case t.Text == "(" && c.before.Text == "get" && !c.before.Member && c.last.Kind != Operator && !c.last.Newline:
		c.getter = t.Start
	case c.mixesCoalesce(t):
		c.countError(t, "?? beside || or && needs parentheses")
	case len(c.levels) == 0 && c.before.Kind == Semicolon && isLiteral(c.last) && Assigns(t.Text):
		c.countError(t, "nothing can be assigned to a number or a string")
	}
}

func (c *checker) countError(t Token, detail string) {
	c.count(t, &c.errors, maxErrors, "too many errors", detail)
}

// mixesCoalesce reports whether t and an earlier operator in the same expression must not be mixed
// without parentheses.
func (c *checker) mixesCoalesce(t Token) bool {
	switch {
	case t.Newline || t.Text == "?" || t.Text == ":" || t.Text == "=>":
		c.now.coalesces, c.now.connects = false, false
	case t.Text == "??":
		c.now.coalesces = true
	case t.Text == "||" || t.Text == "&&":
		c.now.connects = true
	}
	if !c.now.coalesces || !c.now.connects {
		return false
	}
	c.now.coalesces, c.now.connects = false, false
	return true
}

func isLiteral(t Token) bool {
	return t.Kind == Operand && (t.Text[0] == '"' || t.Text[0] == '\'' || t.Text[0] >= '0' && t.Text[0] <= '9')
}

// namespace counts assignments to members of import * as name. A name that is used without a member
// may be declared again.
func (c *checker) namespace(t Token) {
	switch {
	case c.importing == importOpen && t.Kind == Word && c.last.Text == "as" && c.before.Text == "*":
		if c.namespaces == nil {
			c.namespaces = map[string]bool{}
		}
		c.namespaces[t.Text] = true
		c.now.names.bind(t.Text, true)
	case len(c.namespaces) == 0 || c.importing == importOpen:
	case t.Member && c.last.Text == "." && !c.before.Member && c.namespaces[c.before.Text]:
		c.written = t.End
	case c.written > 0 && c.last.End == c.written && (Assigns(t.Text) || step(t.Text)):
		c.count(c.last, &c.constants, maxDuplicates, "too many assignments to constants", "an import cannot be changed")
	case !c.last.Member && t.Text != ".":
		delete(c.namespaces, c.last.Text)
	}
}

// maxErrors limits violations of rules that are cheap to check. For each of them one compiler scans
// the script backwards.
const maxErrors = 50

// strict counts violations of strict mode that are cheap to check.
func (c *checker) strict(t Token) {
	switch {
	case c.last.Member || c.before.Member:
	case t.Text == "(" && c.last.Text == "with",
		t.Text == "function" && c.last.Text == controlEnd,
		t.Kind == Word && !t.Member && t.Text == "eval",
		c.before.Text == "delete" && c.last.Kind == Word && !selects(t):
		c.count(t, &c.errors, maxErrors, "too many violations of strict mode",
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
