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

func (c *checker) enter(t Token) {
	made := c.now.lowered
	if c.now.making && t.Text == "{" {
		c.now.making = false
		// Lowering adds two brackets for each async generator.
		if brackets := len(c.levels) + 2*(c.now.lowered+1) + strings.Count(WrapperStart, "(") + strings.Count(WrapperStart, "{"); brackets > maxBrackets {
			c.fail(t.Start, t.End, "async generators nest too deep", "move the inner ones out of the others")
		}
		made++
	}
	defined := c.now.defined
	if c.now.defining && t.Text == "{" {
		c.now.defining = false
		if defined++; defined > maxDefined {
			c.fail(t.Start, t.End, "functions nest too deep", "at most 60 can be nested; move inner functions out of the others")
		}
	}
	pattern := c.now.names.pattern || c.importing == importOpen || Declares(c.last)
	c.levels = append(c.levels, c.now)
	c.now = level{
		names:     declaredNames{pattern: pattern},
		outer:     c.now.outer + c.now.chain + 1,
		functions: c.now.functions, ambiguous: c.now.ambiguous, angles: c.now.angles,
		lowered: made, defined: defined, question: c.last.Text == "?", enum: c.now.enum || c.before.Text == "enum" && !c.before.Member,
	}
}

// leave returns to the level outside a bracket. The bracket counts there as one more operator, and
// its arrow functions as functions in parameters if => follows.
func (c *checker) leave(t Token) {
	if len(c.levels) == 0 {
		return
	}
	c.parameters, c.questioned, c.closed = c.now.arrows, c.now.question, c.now.names.max
	inner := c.now.names
	c.now = c.levels[len(c.levels)-1]
	c.levels = c.levels[:len(c.levels)-1]
	c.now.chain++
	c.now.arrows = max(c.now.arrows, c.parameters)
	c.now.names.max = max(c.now.names.max, c.closed)
	if inner.pattern {
		for name, times := range inner.counts {
			if c.now.names.count(name, times) > maxDuplicates {
				c.failDuplicates(t)
			}
			c.now.names.bind(name, false)
		}
	}
}

// step starts a new expression of the same statement.
func (c *checker) step() {
	around := c.around()
	c.now.chain, c.now.labels, c.now.doubt = 0, 0, false
	c.now.coalesces, c.now.connects = false, false
	c.now.functions, c.now.ambiguous = around.functions, around.ambiguous
}

func (c *checker) around() level {
	if n := len(c.levels); n > 0 {
		return c.levels[n-1]
	}
	return level{}
}

// comma counts sequences, which one parser walks again for every comma. Elements of arrays and
// members of objects, which have colons, do not count.
func (c *checker) comma(t Token) {
	c.step()
	array := len(c.Brackets) > 0 && c.Brackets[len(c.Brackets)-1].kind == '['
	if c.now.commas++; c.now.commas > maxCommas && !array {
		c.fail(t.Start, t.End, "too many commas", "at most 1,000 expressions may follow each other; put them into an array")
	}
}

// operator counts operators that add more than one level of nesting.
func (c *checker) operator(t Token) {
	switch t.Text {
	case "?":
		c.now.pending++
	case ":":
		if c.now.pending > 0 {
			c.now.pending--
		} else {
			c.now.commas--
			c.count(t, &c.now.labels, maxLabels, "too many labels", "a statement may have 50 of them")
		}
	case "+":
		if c.now.enum {
			c.enumText(t)
		}
	case "<":
		if c.now.angles++; c.TypeScript && c.now.angles > maxAngles {
			c.fail(t.Start, t.End, "too many < in one statement", "a TypeScript statement may have 50 of them; split it")
		}
	}
}

// arrow counts the arrow function of a =>.
func (c *checker) arrow(t Token) {
	if c.now.functions++; c.now.functions > maxFunctions {
		c.fail(t.Start, t.End, "arrow functions nest too deep", "give one of the functions a name")
	}
	if c.now.doubt {
		c.now.doubt = false
		c.now.ambiguous++
	}
	if c.now.ambiguous > maxAmbiguous {
		c.fail(t.Start, t.End, "arrow functions nest too deep in conditional expressions", "give one of the functions a name")
	}
	if c.last.Text != ")" {
		return // only parameters in parentheses are parsed twice
	}
	c.now.arrows = max(c.now.arrows, c.parameters+1)
	if c.parameters >= maxArrows {
		c.fail(t.Start, t.End, "arrow functions nest too deep in parameters", "give one of the functions a name")
	}
}

// enumText fails for text expressions in an enum: the compiler evaluates them, and a member that
// doubles the previous one doubles the program.
func (c *checker) enumText(t Token) {
	c.fail(t.Start, t.End, "members of an enum cannot be added up or made of templates", "use a const for values that are computed")
}

// locateBracket finds the wrong bracket if brackets do not match at the end of the text, or if a
// line starts with a closing bracket of the wrong kind: the outermost bracket that is left open.
func (c *checker) locateBracket() {
	wrong := 0
	switch {
	case c.Err == nil && len(c.Brackets) == 0:
		return
	case c.Err == nil:
	case !c.Err.unmatched || !beginsLine(c.Src, c.Err.start):
		return
	default:
		for wrong = len(c.Brackets) - 1; wrong >= 0 && closing(c.Brackets[wrong].kind) != c.Src[c.Err.start]; {
			wrong--
		}
		if wrong++; wrong == 0 {
			return
		}
	}
	c.Err = nil
	c.neverClosed(c.Brackets[wrong])
}

// checkUnclosed fails for a semicolon inside of ( or [, and for a statement there at the start of a
// line: the bracket was not closed.
func (c *checker) checkUnclosed(t Token) {
	n := len(c.Brackets)
	if n == 0 || c.Brackets[n-1].kind != '(' && c.Brackets[n-1].kind != '[' {
		return
	}
	control := c.Brackets[n-1].control
	switch {
	case t.Kind == Semicolon && !control:
	case t.Kind != Keyword || !t.Newline || !startsStatement(t.Text):
		return
	case control && c.last.Kind == Open, c.last.Text == "as", c.TypeScript && (c.last.Text == "<" || c.last.Kind == Comma):
		return // for (const …), as const, <const T>
	}
	for n > 1 && (c.Brackets[n-2].kind == '(' || c.Brackets[n-2].kind == '[') {
		n--
	}
	c.neverClosed(c.Brackets[n-1])
}

func (c *checker) neverClosed(open bracket) {
	c.fail(open.start, open.start+1, "this "+opening(open.kind)+" is never closed", "add the "+string(closing(open.kind))+" that closes it")
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
