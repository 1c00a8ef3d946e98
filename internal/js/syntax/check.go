// Package syntax checks JavaScript and TypeScript without parsing it.
//
// [Check] limits a text before any parser reads it, in one pass and without recursion: nesting,
// operators, repeated names, regular expressions, and errors for which a compiler would take more
// than linear time. It also determines what the text requires of a compiler ([Features]). [Lexer]
// splits a text into tokens, and [Children] walks the syntax tree of goja. The package does not
// depend on globals and kinds of scripts. Start at [Check], which uses a checker that embeds the
// [Lexer]. Tests that compile scripts verify its limits; they are in package compiler.
package syntax

import (
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// maxNesting limits the depth of the syntax tree of a script: open brackets plus operators, calls
// and unfinished statements around one token. Both parsers recurse on it, and one of them walks
// each expression once per level.
const maxNesting = 1000

// maxWork limits the sum of the nesting of all tokens, which is the worst-case cost of compiling.
const maxWork = 2_000_000

// maxFunctions limits the nesting of arrow functions without brackets, and maxDefined the nesting
// of other functions: the compiler compares the names in each function with those in all functions
// around it.
const (
	maxFunctions = 50
	maxDefined   = 60
)

// Limits of constructs that are compared pairwise, or parsed repeatedly.
const (
	maxCases      = 1000 // cases of all switch statements
	maxUsings     = 200  // using declarations
	maxDecorators = 100  // decorators
	maxLowered    = 200  // async generators and for await, which compile to long code
	maxLoops      = 20   // nested for await without brackets
	maxFiles      = 200  // imports
	maxCommas     = 1000 // expressions in a row, and arguments of one call
	maxAngles     = 50   // < in one TypeScript statement, which may start type arguments
)

// maxArrows limits the nesting of arrow functions in the parameters of arrow functions: such
// parameters are parsed twice at every level.
const maxArrows = 3

// maxAmbiguous limits the nesting of constructs that may be arrow functions in TypeScript until
// their end, as in a ? (b) : c => d. They are parsed twice at every level.
const maxAmbiguous = 2

// WrapperStart is the start of the function around a script. The script is a block in the function,
// so that its declarations may reuse the names of globals, which are the parameters.
const WrapperStart = "(async function(){{"

// Features are the constructs of a text that determine how it is compiled.
type Features struct {
	Await    bool // has the word await
	Lowering bool // has for await or an async generator
	Lowered  Span // the first of them
	// Indents is the size of the white space that lowering inserts before statements.
	Indents int
	Modules []Span
	Exports []Span // the words export outside of all brackets
	// Defaults are the pairs of words export default outside of all brackets.
	Defaults []Span
}

// Span is the range of an import declaration, or of the word export.
type Span struct{ Start, End int }

// checker checks a text before any parser reads it, without recursion and in one pass, and
// determines its features.
type checker struct {
	Lexer
	Features
	errorCounts
	levels []level
	now    level
	work   int
	// last and before are the previous token and the one before it.
	last, before Token
	// parameters is the nesting of arrow functions in the parentheses that closed last. questioned
	// is set if they followed a question mark.
	parameters int
	questioned bool
	cases      int
	usings     int
	decorators int
	lowered    int
	// closed is the maximum count of one name in the brackets that closed last.
	closed    int
	vars      map[string]int
	constants int // assignments to constants
	errors    int
	// importing is the state of the import declaration that is being read.
	importing importState
}

// Check returns the features of text, or an error.
func Check(text string, ts bool) (Features, *Error) {
	c := checker{Lexer: Lexer{Src: text, TypeScript: ts}}
	if at := invalidUTF8(text); at >= 0 {
		return c.Features, &Error{start: at, end: at + 1, Summary: "this is not valid UTF-8", Detail: "save the file as UTF-8"}
	}
	for {
		t := c.Next()
		if t.Kind == End {
			break
		}
		if c.closed > maxParameters && c.last.Text == ")" && (t.Text == "=>" || t.Text == "{") {
			c.failDuplicates(t)
		}
		c.declared(t)
		c.assigned(t)
		c.strict(t)
		c.checkErrors(t)
		c.checkUnclosed(t)
		c.nest(t)
		c.notice(t)
		c.now.names.list = c.now.names.list || Declares(t)
		c.before, c.last = c.last, t
	}
	if c.Err == nil {
		c.checkUnnamed()
	}
	c.locateBracket()
	return c.Features, c.Err
}

func (c *checker) nest(t Token) {
	switch {
	case t.Kind == Open:
		if c.now.enum && t.Text[0] == '`' {
			c.enumText(t)
		}
		c.enter(t)
	case t.Kind == Close:
		c.leave(t)
	case t.Kind == Comma:
		c.comma(t)
	case t.Kind == Semicolon || c.boundary(t):
		c.indent(t)
		c.step()
		c.now.commas, c.now.pending, c.now.angles = 0, 0, c.around().angles
		c.now.names.list, c.now.making, c.now.defining, c.now.loops = false, false, false, 0
	case t.Text == "=>":
		c.now.chain++
		c.arrow(t)
	case t.Text == ":" && c.TypeScript && c.last.Text == ")" && c.questioned:
		c.now.chain++
		c.now.doubt = true
		c.operator(t)
	case t.Kind == Operator || prefixes(t) || nests(t) || t.Kind == Operand && c.last.endsOperand():
		c.now.chain++
		c.operator(t)
	}
	depth := c.now.outer + c.now.chain
	c.work += depth
	if depth > maxNesting {
		c.fail(t.Start, t.End, "this expression or statement is too long", "at most 1,000 operators, calls and brackets may depend on each other; split it with variables")
	}
	if c.work > maxWork {
		c.fail(t.Start, t.End, "this script is too complex", "split long expressions with variables, or the script into several files")
	}
}

// indent counts the white space before the statement that ends.
func (c *checker) indent(t Token) {
	n := len(c.Brackets)
	if t.Kind == Semicolon && c.last.Kind != Semicolon && n > 0 && c.Brackets[n-1].kind == '{' {
		c.Indents += 2 * n
	}
}

// boundary reports whether a statement certainly starts at t, even without a semicolon.
func (c *checker) boundary(t Token) bool {
	switch {
	case infix(t.Text):
		return false
	case t.Kind == Keyword && t.Text == "case":
		c.count(t, &c.cases, maxCases, "too many cases", "all switch statements of a script may have 1,000 cases; use an object or a Map")
		return true
	case t.Kind != Word && t.Kind != Keyword && t.Kind != Operand:
		return false
	}
	if c.last.Text == "}" {
		return true
	}
	return t.Newline && c.last.endsOperand() && !prefixes(c.last)
}

// count increments n, and fails if it exceeds limit.
func (c *checker) count(t Token, n *int, limit int, summary, detail string) {
	if *n++; *n > limit {
		c.fail(t.Start, t.End, summary, detail)
	}
}

// infix reports whether the word continues an expression.
func infix(word string) bool {
	switch word {
	case "else", "in", "instanceof", "as", "is", "satisfies", "extends":
		return true
	}
	return false
}

// prefixes reports whether the token is a word with an operand after it.
func prefixes(t Token) bool {
	if t.Member {
		return false
	}
	switch t.Text {
	case "new", "typeof", "void", "delete", "await", "yield", "in", "instanceof", "extends",
		"as", "is", "satisfies", "keyof", "unique", "readonly", "infer", "asserts", "abstract", "async":
		return true
	}
	return false
}

// nests reports whether the token starts a statement that contains another one.
func nests(t Token) bool {
	if t.Kind != Keyword {
		return false
	}
	return controls(t.Text) || t.Text == "else" || t.Text == "do"
}

// notice records the features of the text.
func (c *checker) notice(t Token) {
	switch {
	case t.Member:
	case t.Text == "await":
		c.Await = true
		if c.last.Text == "for" {
			c.lower(t)
			c.count(t, &c.now.loops, maxLoops, "for await loops nest too deep", "at most 20 can be nested; put inner loops into functions")
		}
	case t.Text == "function":
		c.now.defining = true
		if last := c.last.Text; c.TypeScript && (last == "}" || last == "{" || last == ";" || last == "") {
			c.count(t, &c.now.siblings, maxCommas, "too many functions", "at most 1,000 may stand beside each other in TypeScript; put them into files and import these")
		}
	case t.Text == "export":
		if len(c.levels) == 0 {
			c.Exports = append(c.Exports, Span{t.Start, t.End})
		}
	case t.Text == "default":
		if n := len(c.Exports); len(c.levels) == 0 && c.last.Text == "export" && n > 0 {
			c.Defaults = append(c.Defaults, Span{c.Exports[n-1].Start, t.End})
		}
	case t.Text == "using":
		c.count(t, &c.usings, maxUsings, "too many using declarations", "a script may have 200 of them; split it")
	case t.Text == "*" && (c.last.Text == "async" || c.last.Text == "function" && c.before.Text == "async"):
		c.now.making = true
		c.lower(t)
	case t.Text == "@":
		c.count(t, &c.decorators, maxDecorators, "too many decorators", "a script may have 100 of them")
	}
	c.imports(t)
}

// lower counts a construct that the engine lacks and that compiles to long code.
func (c *checker) lower(t Token) {
	if !c.Lowering {
		c.Lowering, c.Lowered = true, Span{t.Start, t.End}
	}
	c.count(t, &c.lowered, maxLowered, "too many async generators and for await loops", "a script may have 200 of them; put the loop into one function")
}

// Diagnostic returns the error as a diagnostic of the text.
func (e *Error) Diagnostic(text diag.Text) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "script-syntax", Summary: e.Summary, Detail: e.Detail,
		Range: text.Range(e.start, e.end),
	}
}

// importState is the progress of reading an import declaration.
type importState int

const (
	importNone  importState = iota
	importOpen              // before the name of the file
	importNamed             // after the name of the file; attributes may follow
	importWith              // after the word with; brackets follow
)

// imports finds the import declarations of a text, which must be at its top level. import() is an
// error, because it could load files that no revision includes.
func (c *checker) imports(t Token) {
	top := len(c.levels) == 0
	switch {
	case t.Kind == Keyword && t.Text == "import":
		if !top {
			c.fail(t.Start, t.End, "import is not allowed here", "write imports at the top level of a script, outside of all brackets")
			return
		}
		if c.checkUnnamed(); c.Err != nil {
			return
		}
		c.Modules = append(c.Modules, Span{Start: t.Start})
		if len(c.Modules) > maxFiles {
			c.fail(t.Start, t.End, "too many imports", "a script may have 200 of them")
		}
		c.importing = importOpen
	case c.importing == importOpen && c.last.Text == "import" && (t.Text == "(" || t.Text == "."):
		c.fail(c.last.Start, c.last.End, "import() and import.meta do not exist here", `write import { name } from "./file.js" instead`)
	case c.importing == importOpen && top && t.Kind == Operand && (t.Text[0] == '"' || t.Text[0] == '\''):
		c.extend(t, importNamed)
	case c.importing == importNamed && t.Text == "with" && !t.Newline:
		c.extend(t, importWith)
	case c.importing == importWith && top && t.Text == "}":
		c.extend(t, importNone)
	case c.importing == importNamed:
		if t.Kind == Semicolon {
			c.extend(t, importNone)
		}
		c.importing = importNone
	}
}

// checkUnnamed fails for a declaration without the name of a file.
func (c *checker) checkUnnamed() {
	if c.importing == importOpen {
		start := c.Modules[len(c.Modules)-1].Start
		c.fail(start, start+len("import"), "this import names no file", `write import { name } from "./file.js"`)
	}
}

func (c *checker) extend(t Token, state importState) {
	c.Modules[len(c.Modules)-1].End = t.End
	c.importing = state
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
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
