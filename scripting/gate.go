package scripting

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
	maxCases  = 1000 // cases of all switch statements
	maxUsings = 200  // using declarations
	maxMarks  = 100  // decorators
	maxMade   = 200  // async generators and for await, which become long
	maxLoops  = 20   // for await in each other without brackets
	maxFiles  = 200  // imports
	maxCommas = 1000 // expressions in a row, and arguments of one call
	maxAngles = 50   // < in one TypeScript statement, which may begin type arguments
)

// maxArrows bounds how deep arrow functions nest in the parameters of arrow
// functions, because such parameters are parsed twice at every level.
const maxArrows = 3

// maxDoubts bounds how deep constructs nest of which TypeScript's grammar
// tells only at their end whether they are arrow functions, as in a ? (b) : c
// => d. They are parsed twice at every level.
const maxDoubts = 2

// wrapperStart is the front of the function around a body. The body stands in a block of the
// function, so that its declarations may take the names of globals, which are the function's
// parameters.
const wrapperStart = "(async function(){{"

// features are the constructs of a text that decide how it is compiled.
type features struct {
	await    bool   // the word await stands somewhere
	lowering bool   // for await or an async generator stands somewhere
	lowered  module // the first of them
	// indents are the bytes of white space in front of statements that lowering makes.
	indents int
	modules []module
	exports []module // the words export outside of all brackets
}

// module is the place of an import declaration, or of the word export.
type module struct{ start, end int }

// gate bounds a text before any parser sees it, without recursion and in one
// pass, and finds out what its compilation needs.
type gate struct {
	lexer
	features
	slips
	levels []level
	now    level
	work   int
	// last and before are the token before the present one and the one before that.
	last, before lexeme
	// parameters is how deep arrow functions nest in the parentheses that
	// closed last; questioned says that these followed a question mark.
	parameters int
	questioned bool
	cases      int
	usings     int
	marks      int
	made       int
	// closed is how often one name stands in the brackets that closed last.
	closed    int
	vars      map[string]int
	constants int // assignments to constants
	mistakes  int
	// importing is the declaration that is being read, when open says so.
	importing importState
}

// inspect returns the features of text, or why it is refused.
func inspect(text string, ts bool) (features, *lexError) {
	g := gate{lexer: lexer{src: text, ts: ts}}
	if at := invalidUTF8(text); at >= 0 {
		return g.features, &lexError{start: at, end: at + 1, summary: "this is not valid UTF-8", detail: "save the file as UTF-8"}
	}
	for {
		t := g.next()
		if t.kind == tokenEnd {
			break
		}
		if g.closed > maxParameters && g.last.text == ")" && (t.text == "=>" || t.text == "{") {
			g.twins(t)
		}
		g.declared(t)
		g.assigned(t)
		g.strict(t)
		g.mistaken(t)
		g.adrift(t)
		g.nest(t)
		g.notice(t)
		g.now.names.list = g.now.names.list || declares(t)
		g.before, g.last = g.last, t
	}
	if g.err == nil {
		g.unnamed()
	}
	g.blame()
	return g.features, g.err
}

func (g *gate) nest(t lexeme) {
	switch {
	case t.kind == tokenOpen:
		if g.now.enum && t.text[0] == '`' {
			g.enumText(t)
		}
		g.enter(t)
	case t.kind == tokenClose:
		g.leave(t)
	case t.kind == tokenComma:
		g.comma(t)
	case t.kind == tokenSemicolon || g.boundary(t):
		g.indent(t)
		g.step()
		g.now.commas, g.now.pending, g.now.angles = 0, 0, g.around().angles
		g.now.names.list, g.now.making, g.now.defining, g.now.loops = false, false, false, 0
	case t.text == "=>":
		g.now.chain++
		g.arrow(t)
	case t.text == ":" && g.ts && g.last.text == ")" && g.questioned:
		g.now.chain++
		g.now.doubt = true
		g.operator(t)
	case t.kind == tokenOperator || prefixes(t) || nests(t) || t.kind == tokenOperand && g.last.endsOperand():
		g.now.chain++
		g.operator(t)
	}
	depth := g.now.outer + g.now.chain
	g.work += depth
	if depth > maxNesting {
		g.fail(t.start, t.end, "this expression or statement is too long", "at most 1,000 operators, calls and brackets may depend on each other; split it with variables")
	}
	if g.work > maxWork {
		g.fail(t.start, t.end, "this body is too complex", "split long expressions with variables, or the body into several files")
	}
}

// indent counts the white space in front of the statement that ends.
func (g *gate) indent(t lexeme) {
	n := len(g.braces)
	if t.kind == tokenSemicolon && g.last.kind != tokenSemicolon && n > 0 && g.braces[n-1].kind == '{' {
		g.indents += 2 * n
	}
}

// boundary reports whether a new statement surely begins at t, also where no
// semicolon says so.
func (g *gate) boundary(t lexeme) bool {
	switch {
	case infix(t.text):
		return false
	case t.kind == tokenKeyword && t.text == "case":
		g.count(t, &g.cases, maxCases, "too many cases", "all switch statements of a body may have 1,000 cases; use an object or a Map")
		return true
	case t.kind != tokenWord && t.kind != tokenKeyword && t.kind != tokenOperand:
		return false
	}
	if g.last.text == "}" {
		return true
	}
	return t.newline && g.last.endsOperand() && !prefixes(g.last)
}

// count counts one more of what a body may have only so many of.
func (g *gate) count(t lexeme, n *int, most int, summary, detail string) {
	if *n++; *n > most {
		g.fail(t.start, t.end, summary, detail)
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
func prefixes(t lexeme) bool {
	if t.member {
		return false
	}
	switch t.text {
	case "new", "typeof", "void", "delete", "await", "yield", "in", "instanceof", "extends",
		"as", "is", "satisfies", "keyof", "unique", "readonly", "infer", "asserts", "abstract", "async":
		return true
	}
	return false
}

// nests reports whether the token begins a statement that holds another one.
func nests(t lexeme) bool {
	if t.kind != tokenKeyword {
		return false
	}
	return controls(t.text) || t.text == "else" || t.text == "do"
}

// notice keeps what decides how the text is compiled.
func (g *gate) notice(t lexeme) {
	switch {
	case t.member:
	case t.text == "await":
		g.await = true
		if g.last.text == "for" {
			g.lower(t)
			g.count(t, &g.now.loops, maxLoops, "for await loops nest too deep", "at most 20 may be in each other; put the inner ones into functions")
		}
	case t.text == "function":
		g.now.defining = true
		if last := g.last.text; g.ts && (last == "}" || last == "{" || last == ";" || last == "") {
			g.count(t, &g.now.siblings, maxCommas, "too many functions", "at most 1,000 may stand beside each other in TypeScript; put them into files and import these")
		}
	case t.text == "export":
		if len(g.levels) == 0 {
			g.exports = append(g.exports, module{t.start, t.end})
		}
	case t.text == "using":
		g.count(t, &g.usings, maxUsings, "too many using declarations", "a body may have 200 of them; split it")
	case t.text == "*" && (g.last.text == "async" || g.last.text == "function" && g.before.text == "async"):
		g.now.making = true
		g.lower(t)
	case t.text == "@":
		g.count(t, &g.marks, maxMarks, "too many decorators", "a body may have 100 of them")
	}
	g.imports(t)
}

// lower counts a construct that the engine does not know, and of which the
// compiler makes a long one.
func (g *gate) lower(t lexeme) {
	if !g.lowering {
		g.lowering, g.lowered = true, module{t.start, t.end}
	}
	g.count(t, &g.made, maxMade, "too many async generators and for await loops", "a body may have 200 of them; put the loop into one function")
}

func (e *lexError) diagnostic(text diag.Text) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "script-syntax", Summary: e.summary, Detail: e.detail,
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
func (g *gate) imports(t lexeme) {
	top := len(g.levels) == 0
	switch {
	case t.kind == tokenKeyword && t.text == "import":
		if !top {
			g.fail(t.start, t.end, "import may not stand here", "imports stand at the top level of a body, outside of all brackets")
			return
		}
		if g.unnamed(); g.err != nil {
			return
		}
		g.modules = append(g.modules, module{start: t.start})
		if len(g.modules) > maxFiles {
			g.fail(t.start, t.end, "too many imports", "a body may have 200 of them")
		}
		g.importing = importOpen
	case g.importing == importOpen && g.last.text == "import" && (t.text == "(" || t.text == "."):
		g.fail(g.last.start, g.last.end, "import() and import.meta do not exist here", `write import { name } from "./file.js" instead`)
	case g.importing == importOpen && top && t.kind == tokenOperand && (t.text[0] == '"' || t.text[0] == '\''):
		g.extend(t, importNamed)
	case g.importing == importNamed && t.text == "with" && !t.newline:
		g.extend(t, importWith)
	case g.importing == importWith && top && t.text == "}":
		g.extend(t, importNone)
	case g.importing == importNamed:
		if t.kind == tokenSemicolon {
			g.extend(t, importNone)
		}
		g.importing = importNone
	}
}

// unnamed refuses a declaration that ended without the name of a file.
func (g *gate) unnamed() {
	if g.importing == importOpen {
		start := g.modules[len(g.modules)-1].start
		g.fail(start, start+len("import"), "this import names no file", `write import { name } from "./file.js"`)
	}
}

func (g *gate) extend(t lexeme, state importState) {
	g.modules[len(g.modules)-1].end = t.end
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
