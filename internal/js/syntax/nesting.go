package syntax

import (
	"strings"
)

// level is what the gate knows of the inside of one bracket.
type level struct {
	outer  int // the nesting where the bracket opened
	chain  int // operators since the last boundary
	arrows int // how deep arrow functions nest in parameters here

	commas    int  // commas here that separate no members of a literal
	pending   int  // question marks whose colon has not come
	angles    int  // < around this place that may begin type arguments
	enum      bool // this is the body of an enum
	functions int  // arrow functions around this place that no bracket ends
	ambiguous int  // arrow functions around this place that may be none
	question  bool // the bracket follows a question mark
	doubt     bool // what follows may be the result type of an arrow function
	labels    int  // colons since the last boundary that no question mark precedes
	names     declaredNames

	// coalesces and connects say that ?? and that || or && stand in this expression.
	coalesces, connects bool
	// making says that the body of a function follows that becomes a long one,
	// and made how many such functions are around this place.
	making  bool
	lowered int
	// defining says that the body of a function follows, defined is how many
	// such functions are around this place, and loops how many for await of
	// this statement are in each other.
	defining bool
	defined  int
	loops    int
	// siblings are the functions beside each other here, of which a compiler
	// makes expressions in a row.
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

// leave goes back to the level outside a bracket. The bracket counts there as
// one more operator, and its arrow functions as being in parameters if => follows.
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

// step begins a new expression of the same statement.
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

// comma counts what one parser walks again for every comma: sequences, but
// not the elements of an array nor the members of an object, which have colons.
func (g *checker) comma(t Token) {
	g.step()
	array := len(g.Brackets) > 0 && g.Brackets[len(g.Brackets)-1].kind == '['
	if g.now.commas++; g.now.commas > maxCommas && !array {
		g.fail(t.Start, t.End, "too many commas", "at most 1,000 expressions may follow each other; put them into an array")
	}
}

// operator counts the operators that mean more than one level of nesting.
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

// arrow counts the arrow function that => belongs to.
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

// enumText refuses what may build text in an enum: the compiler computes it,
// and a member that doubles the one before doubles the program.
func (g *checker) enumText(t Token) {
	g.fail(t.Start, t.End, "members of an enum cannot be added up or made of templates", "use a const for values that are computed")
}

// blame finds the bracket that is wrong where brackets do not match at the end
// of the text, or where a line begins with one that closes another than it
// should: the outermost of those that are left open.
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

// adrift refuses a semicolon inside of ( or [, and a statement there at the
// beginning of a line: the bracket was never closed.
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

// commands reports whether a word at the start of a line can only begin a statement.
func startsStatement(word string) bool {
	switch word {
	case "const", "let", "var", "if", "for", "while", "do", "switch", "try", "return", "throw", "break", "continue", "import", "export", "debugger":
		return true
	}
	return false
}
