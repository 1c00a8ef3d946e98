// Package syntax reads JavaScript and TypeScript without parsing them.
//
// [Check] bounds a text before any parser sees it, in one pass and without recursion: nesting,
// operators, repeated names, regular expressions and mistakes that a compiler would take more
// than linear time for. It also finds what the text needs of a compiler ([Features]). [Lexer] cuts
// a text into tokens, and [Children] walks the tree that goja's parser makes. The package knows no
// globals and no kinds of bodies: package compiler does. Start at [Check], which is the gate; it
// embeds the [Lexer]. Tests that compile bodies hold its bounds: they stand in package compiler.
package syntax

import (
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// maxNesting bounds how deep the tree of a body may be: brackets that are
// open plus operators, calls and unfinished statements around one token. Both
// parsers recurse on it, and one walks each expression once per level of it.
const maxNesting = 1000

// maxWork bounds the sum over all tokens of the nesting around each, which is
// what compiling costs in the worst case.
const maxWork = 2_000_000

// maxFunctions bounds how deep arrow functions nest without brackets, and
// maxDefined other functions: the compiler compares the names in each with
// those in all around it.
const (
	maxFunctions = 50
	maxDefined   = 60
)

// The bounds of what is compared pairwise, or parsed again and again.
const (
	maxCases      = 1000 // cases of all switch statements
	maxUsings     = 200  // using declarations
	maxDecorators = 100  // decorators
	maxLowered    = 200  // async generators and for await, which become long
	maxLoops      = 20   // for await in each other without brackets
	maxFiles      = 200  // imports
	maxCommas     = 1000 // expressions in a row, and arguments of one call
	maxAngles     = 50   // < in one TypeScript statement, which may begin type arguments
)

// maxArrows bounds how deep arrow functions nest in the parameters of arrow
// functions, because such parameters are parsed twice at every level.
const maxArrows = 3

// maxDoubts bounds how deep constructs nest of which TypeScript's grammar
// tells only at their end whether they are arrow functions, as in a ? (b) : c
// => d. They are parsed twice at every level.
const maxAmbiguous = 2

// WrapperStart is the front of the function around a body. The body stands in a block of the
// function, so that its declarations may take the names of globals, which are the function's
// parameters.
const WrapperStart = "(async function(){{"

// Features are the constructs of a text that decide how it is compiled.
type Features struct {
	Await    bool // the word await stands somewhere
	Lowering bool // for await or an async generator stands somewhere
	Lowered  Span // the first of them
	// Indents are the bytes of white space in front of statements that lowering makes.
	Indents int
	Modules []Span
	Exports []Span // the words export outside of all brackets
}

// Span is the place of an import declaration, or of the word export.
type Span struct{ Start, End int }

// gate bounds a text before any parser sees it, without recursion and in one
// pass, and finds out what its compilation needs.
type checker struct {
	Lexer
	Features
	errorCounts
	levels []level
	now    level
	work   int
	// last and before are the token before the present one and the one before that.
	last, before Token
	// parameters is how deep arrow functions nest in the parentheses that
	// closed last; questioned says that these followed a question mark.
	parameters int
	questioned bool
	cases      int
	usings     int
	decorators int
	lowered    int
	// closed is how often one name stands in the brackets that closed last.
	closed    int
	vars      map[string]int
	constants int // assignments to constants
	errors    int
	// importing is the declaration that is being read, when open says so.
	importing importState
}

// Check returns the features of text, or why it is refused.
func Check(text string, ts bool) (Features, *Error) {
	g := checker{Lexer: Lexer{Src: text, TypeScript: ts}}
	if at := invalidUTF8(text); at >= 0 {
		return g.Features, &Error{start: at, end: at + 1, Summary: "this is not valid UTF-8", Detail: "save the file as UTF-8"}
	}
	for {
		t := g.Next()
		if t.Kind == End {
			break
		}
		if g.closed > maxParameters && g.last.Text == ")" && (t.Text == "=>" || t.Text == "{") {
			g.failDuplicates(t)
		}
		g.declared(t)
		g.assigned(t)
		g.strict(t)
		g.checkErrors(t)
		g.checkUnclosed(t)
		g.nest(t)
		g.notice(t)
		g.now.names.list = g.now.names.list || Declares(t)
		g.before, g.last = g.last, t
	}
	if g.Err == nil {
		g.checkUnnamed()
	}
	g.locateBracket()
	return g.Features, g.Err
}

func (g *checker) nest(t Token) {
	switch {
	case t.Kind == Open:
		if g.now.enum && t.Text[0] == '`' {
			g.enumText(t)
		}
		g.enter(t)
	case t.Kind == Close:
		g.leave(t)
	case t.Kind == Comma:
		g.comma(t)
	case t.Kind == Semicolon || g.boundary(t):
		g.indent(t)
		g.step()
		g.now.commas, g.now.pending, g.now.angles = 0, 0, g.around().angles
		g.now.names.list, g.now.making, g.now.defining, g.now.loops = false, false, false, 0
	case t.Text == "=>":
		g.now.chain++
		g.arrow(t)
	case t.Text == ":" && g.TypeScript && g.last.Text == ")" && g.questioned:
		g.now.chain++
		g.now.doubt = true
		g.operator(t)
	case t.Kind == Operator || prefixes(t) || nests(t) || t.Kind == Operand && g.last.endsOperand():
		g.now.chain++
		g.operator(t)
	}
	depth := g.now.outer + g.now.chain
	g.work += depth
	if depth > maxNesting {
		g.fail(t.Start, t.End, "this expression or statement is too long", "at most 1,000 operators, calls and brackets may depend on each other; split it with variables")
	}
	if g.work > maxWork {
		g.fail(t.Start, t.End, "this body is too complex", "split long expressions with variables, or the body into several files")
	}
}

// indent counts the white space in front of the statement that ends.
func (g *checker) indent(t Token) {
	n := len(g.Brackets)
	if t.Kind == Semicolon && g.last.Kind != Semicolon && n > 0 && g.Brackets[n-1].kind == '{' {
		g.Indents += 2 * n
	}
}

// boundary reports whether a new statement surely begins at t, also where no
// semicolon says so.
func (g *checker) boundary(t Token) bool {
	switch {
	case infix(t.Text):
		return false
	case t.Kind == Keyword && t.Text == "case":
		g.count(t, &g.cases, maxCases, "too many cases", "all switch statements of a body may have 1,000 cases; use an object or a Map")
		return true
	case t.Kind != Word && t.Kind != Keyword && t.Kind != Operand:
		return false
	}
	if g.last.Text == "}" {
		return true
	}
	return t.Newline && g.last.endsOperand() && !prefixes(g.last)
}

// count counts one more of what a body may have only so many of.
func (g *checker) count(t Token, n *int, most int, summary, detail string) {
	if *n++; *n > most {
		g.fail(t.Start, t.End, summary, detail)
	}
}

// infix reports whether the word goes on with what stands before it.
func infix(word string) bool {
	switch word {
	case "else", "in", "instanceof", "as", "is", "satisfies", "extends":
		return true
	}
	return false
}

// prefixes reports whether the token is a word that takes an operand behind it.
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

// nests reports whether the token begins a statement that holds another one.
func nests(t Token) bool {
	if t.Kind != Keyword {
		return false
	}
	return controls(t.Text) || t.Text == "else" || t.Text == "do"
}

// notice keeps what decides how the text is compiled.
func (g *checker) notice(t Token) {
	switch {
	case t.Member:
	case t.Text == "await":
		g.Await = true
		if g.last.Text == "for" {
			g.lower(t)
			g.count(t, &g.now.loops, maxLoops, "for await loops nest too deep", "at most 20 may be in each other; put the inner ones into functions")
		}
	case t.Text == "function":
		g.now.defining = true
		if last := g.last.Text; g.TypeScript && (last == "}" || last == "{" || last == ";" || last == "") {
			g.count(t, &g.now.siblings, maxCommas, "too many functions", "at most 1,000 may stand beside each other in TypeScript; put them into files and import these")
		}
	case t.Text == "export":
		if len(g.levels) == 0 {
			g.Exports = append(g.Exports, Span{t.Start, t.End})
		}
	case t.Text == "using":
		g.count(t, &g.usings, maxUsings, "too many using declarations", "a body may have 200 of them; split it")
	case t.Text == "*" && (g.last.Text == "async" || g.last.Text == "function" && g.before.Text == "async"):
		g.now.making = true
		g.lower(t)
	case t.Text == "@":
		g.count(t, &g.decorators, maxDecorators, "too many decorators", "a body may have 100 of them")
	}
	g.imports(t)
}

// lower counts a construct that the engine does not know, and of which the
// compiler makes a long one.
func (g *checker) lower(t Token) {
	if !g.Lowering {
		g.Lowering, g.Lowered = true, Span{t.Start, t.End}
	}
	g.count(t, &g.lowered, maxLowered, "too many async generators and for await loops", "a body may have 200 of them; put the loop into one function")
}

// Diagnostic returns the error as a diagnostic of the text.
func (e *Error) Diagnostic(text diag.Text) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "script-syntax", Summary: e.Summary, Detail: e.Detail,
		Range: text.Range(e.start, e.end),
	}
}

// importState says how much of an import declaration was read.
type importState int

const (
	importNone  importState = iota
	importOpen              // up to the name of the file
	importNamed             // the name of the file, so that attributes may follow
	importWith              // the word with, so that their brackets follow
)

// imports finds the import declarations of a text, which may stand at its top
// level only, and refuses import(), which could load what no revision knows.
func (g *checker) imports(t Token) {
	top := len(g.levels) == 0
	switch {
	case t.Kind == Keyword && t.Text == "import":
		if !top {
			g.fail(t.Start, t.End, "import may not stand here", "imports stand at the top level of a body, outside of all brackets")
			return
		}
		if g.checkUnnamed(); g.Err != nil {
			return
		}
		g.Modules = append(g.Modules, Span{Start: t.Start})
		if len(g.Modules) > maxFiles {
			g.fail(t.Start, t.End, "too many imports", "a body may have 200 of them")
		}
		g.importing = importOpen
	case g.importing == importOpen && g.last.Text == "import" && (t.Text == "(" || t.Text == "."):
		g.fail(g.last.Start, g.last.End, "import() and import.meta do not exist here", `write import { name } from "./file.js" instead`)
	case g.importing == importOpen && top && t.Kind == Operand && (t.Text[0] == '"' || t.Text[0] == '\''):
		g.extend(t, importNamed)
	case g.importing == importNamed && t.Text == "with" && !t.Newline:
		g.extend(t, importWith)
	case g.importing == importWith && top && t.Text == "}":
		g.extend(t, importNone)
	case g.importing == importNamed:
		if t.Kind == Semicolon {
			g.extend(t, importNone)
		}
		g.importing = importNone
	}
}

// unnamed refuses a declaration that ended without the name of a file.
func (g *checker) checkUnnamed() {
	if g.importing == importOpen {
		start := g.Modules[len(g.Modules)-1].Start
		g.fail(start, start+len("import"), "this import names no file", `write import { name } from "./file.js"`)
	}
}

func (g *checker) extend(t Token, state importState) {
	g.Modules[len(g.Modules)-1].End = t.End
	g.importing = state
}

// invalidUTF8 returns the place of the first byte that is not UTF-8, or -1.
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
