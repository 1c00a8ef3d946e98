package syntax

import (
	"strings"
)

// level is the state of the checker inside one bracket.
type level struct {
	outer  int // nesting at the opening bracket
	chain  int // operators since the last boundary
	arrows int // nesting of arrow functions in parameters here

	commas    int  // commas that do not separate members of a literal
	pending   int  // question marks without their colon
	angles    int  // < around this position that may start type arguments
	enum      bool // body of an enum
	functions int  // arrow functions around this position that no bracket ends
	ambiguous int  // possible arrow functions around this position
	question  bool // the bracket follows a question mark
	doubt     bool // the result type of an arrow function may follow
	labels    int  // colons since the last boundary without a question mark
	names     declaredNames

	// coalesces and connects are set if ?? and || or && occur in this expression.
	coalesces, connects bool
	// making is set if the body of a function follows that compiles to long code. lowered is the
	// number of such functions around this position.
	making  bool
	lowered int
	// defining is set if the body of a function follows. defined is the number of such functions
	// around this position, and loops the nesting of for await in this statement.
	defining bool
	defined  int
	loops    int
	// siblings is the number of functions next to each other, which a compiler turns into
	// expressions in a row.
	siblings int
}

func (g *checker) enter(t Token) {
	made := g.now.lowered
	if g.now.making && t.Text == "{" {
		g.now.making = false
		// Lowering adds two brackets for each async generator.
		if brackets := len(g.levels) + 2*(g.now.lowered+1) + strings.Count(WrapperStart, "(") + strings.Count(WrapperStart, "{"); brackets > maxBrackets {
			g.fail(t.Start, t.End, "async generators nest too deep", "move the inner ones out of the others")
		}
		made++
	}
	defined := g.now.defined
	if g.now.defining && t.Text == "{" {
		g.now.defining = false
		if defined++; defined > maxDefined {
			g.fail(t.Start, t.End, "functions nest too deep", "at most 60 may be in each other; move the inner ones out of the others")
		}
	}
	pattern := g.now.names.pattern || g.importing == importOpen || Declares(g.last)
	g.levels = append(g.levels, g.now)
	g.now = level{
		names:     declaredNames{pattern: pattern},
		outer:     g.now.outer + g.now.chain + 1,
		functions: g.now.functions, ambiguous: g.now.ambiguous, angles: g.now.angles,
		lowered: made, defined: defined, question: g.last.Text == "?", enum: g.now.enum || g.before.Text == "enum" && !g.before.Member,
	}
}

// leave returns to the level outside a bracket. The bracket counts there as one more operator, and
// its arrow functions as functions in parameters if => follows.
func (g *checker) leave(t Token) {
	if len(g.levels) == 0 {
		return
	}
	g.parameters, g.questioned, g.closed = g.now.arrows, g.now.question, g.now.names.max
	inner := g.now.names
	g.now = g.levels[len(g.levels)-1]
	g.levels = g.levels[:len(g.levels)-1]
	g.now.chain++
	g.now.arrows = max(g.now.arrows, g.parameters)
	g.now.names.max = max(g.now.names.max, g.closed)
	if inner.pattern {
		for name, times := range inner.counts {
			if g.now.names.count(name, times) > maxDuplicates {
				g.failDuplicates(t)
			}
			g.now.names.bind(name, false)
		}
	}
}

// step starts a new expression of the same statement.
func (g *checker) step() {
	around := g.around()
	g.now.chain, g.now.labels, g.now.doubt = 0, 0, false
	g.now.coalesces, g.now.connects = false, false
	g.now.functions, g.now.ambiguous = around.functions, around.ambiguous
}

func (g *checker) around() level {
	if n := len(g.levels); n > 0 {
		return g.levels[n-1]
	}
	return level{}
}

// comma counts sequences, which one parser walks again for every comma. Elements of arrays and
// members of objects, which have colons, do not count.
func (g *checker) comma(t Token) {
	g.step()
	array := len(g.Brackets) > 0 && g.Brackets[len(g.Brackets)-1].kind == '['
	if g.now.commas++; g.now.commas > maxCommas && !array {
		g.fail(t.Start, t.End, "too many commas", "at most 1,000 expressions may follow each other; put them into an array")
	}
}

// operator counts operators that add more than one level of nesting.
func (g *checker) operator(t Token) {
	switch t.Text {
	case "?":
		g.now.pending++
	case ":":
		if g.now.pending > 0 {
			g.now.pending--
		} else {
			g.now.commas--
			g.count(t, &g.now.labels, maxLabels, "too many labels", "a statement may have 50 of them")
		}
	case "+":
		if g.now.enum {
			g.enumText(t)
		}
	case "<":
		if g.now.angles++; g.TypeScript && g.now.angles > maxAngles {
			g.fail(t.Start, t.End, "too many < in one statement", "a TypeScript statement may have 50 of them; split it")
		}
	}
}

// arrow counts the arrow function of a =>.
func (g *checker) arrow(t Token) {
	if g.now.functions++; g.now.functions > maxFunctions {
		g.fail(t.Start, t.End, "arrow functions nest too deep", "give one of the functions a name")
	}
	if g.now.doubt {
		g.now.doubt = false
		g.now.ambiguous++
	}
	if g.now.ambiguous > maxAmbiguous {
		g.fail(t.Start, t.End, "arrow functions nest too deep in conditional expressions", "give one of the functions a name")
	}
	if g.last.Text != ")" {
		return // only parameters in parentheses are parsed twice
	}
	g.now.arrows = max(g.now.arrows, g.parameters+1)
	if g.parameters >= maxArrows {
		g.fail(t.Start, t.End, "arrow functions nest too deep in parameters", "give one of the functions a name")
	}
}

// enumText fails for text expressions in an enum: the compiler evaluates them, and a member that
// doubles the previous one doubles the program.
func (g *checker) enumText(t Token) {
	g.fail(t.Start, t.End, "members of an enum cannot be added up or made of templates", "use a const for values that are computed")
}

// locateBracket finds the wrong bracket if brackets do not match at the end of the text, or if a
// line starts with a closing bracket of the wrong kind: the outermost bracket that is left open.
func (g *checker) locateBracket() {
	wrong := 0
	switch {
	case g.Err == nil && len(g.Brackets) == 0:
		return
	case g.Err == nil:
	case !g.Err.unmatched || !beginsLine(g.Src, g.Err.start):
		return
	default:
		for wrong = len(g.Brackets) - 1; wrong >= 0 && closing(g.Brackets[wrong].kind) != g.Src[g.Err.start]; {
			wrong--
		}
		if wrong++; wrong == 0 {
			return
		}
	}
	g.Err = nil
	g.neverClosed(g.Brackets[wrong])
}

// checkUnclosed fails for a semicolon inside of ( or [, and for a statement there at the start of a
// line: the bracket was not closed.
func (g *checker) checkUnclosed(t Token) {
	n := len(g.Brackets)
	if n == 0 || g.Brackets[n-1].kind != '(' && g.Brackets[n-1].kind != '[' {
		return
	}
	control := g.Brackets[n-1].control
	switch {
	case t.Kind == Semicolon && !control:
	case t.Kind != Keyword || !t.Newline || !startsStatement(t.Text):
		return
	case control && g.last.Kind == Open, g.last.Text == "as", g.TypeScript && (g.last.Text == "<" || g.last.Kind == Comma):
		return // for (const …), as const, <const T>
	}
	for n > 1 && (g.Brackets[n-2].kind == '(' || g.Brackets[n-2].kind == '[') {
		n--
	}
	g.neverClosed(g.Brackets[n-1])
}

func (g *checker) neverClosed(open bracket) {
	g.fail(open.start, open.start+1, "this "+opening(open.kind)+" is never closed", "add the "+string(closing(open.kind))+" that closes it")
}

// beginsLine reports whether only white space precedes an offset on its line.
func beginsLine(text string, offset int) bool {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	return strings.TrimSpace(text[start:offset]) == ""
}

// startsStatement reports whether a word at the start of a line can only start a statement.
func startsStatement(word string) bool {
	switch word {
	case "const", "let", "var", "if", "for", "while", "do", "switch", "try", "return", "throw", "break", "continue", "import", "export", "debugger":
		return true
	}
	return false
}
