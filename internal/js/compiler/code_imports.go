package compiler

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// maxRequired limits the names in one declaration that calls require.
const maxRequired = 100

// maxShownImport limits an import in a message, in bytes.
const maxShownImport = 200

// importRemover finds the imports of agent code: import statements of JavaScript and Python,
// declarations that only call require and import(), and import() and import.meta elsewhere. It
// works on tokens, so that strings, templates, comments and regular expressions are ignored.
type importRemover struct {
	tokens []syntax.Token
	// comments are Python comments after and within import statements.
	comments []syntax.Span
	at       int
	// removed are the imports, in order.
	removed []removedImport
	// fence is the fence around all of the code; nil if there is none.
	fence *fence
	// ownRequire is set if the code has its own require; nil until it is determined.
	ownRequire *bool
	// names are the words in the imports, including the names that they declare.
	names map[string]bool
}

// removedImport is a part of the code with its replacement.
type removedImport struct {
	syntax.Span
	instead string
}

// Replacements of imports. An expression is replaced by [nothing] if it fits, which is also a type.
// Arguments with calls are still evaluated, by [anything], which is as long as the word import.
const (
	emptyStatement = ";"
	nothing        = "undefined"
	anything       = "Object"
)

// removeImports returns the text with empty statements instead of import statements, and unknown
// values instead of import() and import.meta, and the removed imports. Other bytes keep their
// positions. Text that cannot be split into tokens is left to the parser.
func removeImports(text string) (string, *importRemover) {
	found := &importRemover{names: map[string]bool{}}
	if len(text) > source.MaxScript || !strings.Contains(text, "import") && !strings.Contains(text, "require") {
		return text, found
	}
	found.tokens, found.comments = importTokens(text)
	for found.at = range found.tokens {
		if n := len(found.removed); n > 0 && found.tokens[found.at].Start < found.removed[n-1].End {
			continue
		}
		if end := found.statement(); end > found.at {
			found.remove(end)
		} else {
			found.expression(text)
		}
	}
	var b strings.Builder
	from := 0
	for _, m := range found.removed {
		b.WriteString(text[from:m.Start])
		b.WriteString(emptied(text[m.Start:m.End], m.instead))
		from = m.End
	}
	b.WriteString(text[from:])
	return b.String(), found
}

// emptied returns the replacement of a text, padded to the same length and with the same line ends.
func emptied(s, instead string) string {
	out := []byte(s)
	copy(out, instead)
	for i := len(instead); i < len(out); i++ {
		if out[i] != '\n' && out[i] != '\r' {
			out[i] = ' '
		}
	}
	return string(out)
}

// token returns token n; an empty one after the last.
func (i *importRemover) token(n int) syntax.Token {
	if n >= len(i.tokens) {
		return syntax.Token{Kind: syntax.End, Newline: true}
	}
	return i.tokens[n]
}

// statement returns the end of the import statement at the current token: the index after its last
// token, or the current index if there is none.
func (i *importRemover) statement() int {
	t, before := i.token(i.at), syntax.Token{Kind: syntax.Semicolon}
	if i.at > 0 {
		before = i.token(i.at - 1)
	}
	begins := t.Newline || before.Kind == syntax.Semicolon || before.Text == "}" || before.Text == "{"
	switch {
	case !begins || t.Member:
		return i.at
	case i.importCall(i.at) > 0:
		if wantsValue(before) {
			return i.at
		}
		return i.statementEnd(i.importCall(i.at))
	case t.Kind == syntax.Keyword && t.Text == "import":
		for _, end := range []int{i.jsImport(i.at + 1), i.lineOf(i.at + 1)} {
			if end = i.statementEnd(end); end > i.at {
				return end
			}
		}
	case t.Kind == syntax.Word && t.Text == "from":
		return i.statementEnd(i.pythonFrom(i.at + 1))
	case syntax.Declares(t):
		return i.statementEnd(i.requireDeclarations(i.at + 1))
	case t.Text == "require" && !wantsValue(before):
		return i.statementEnd(i.requireCall(i.at))
	}
	return i.at
}

// wantsValue reports whether an expression, or a value, must follow a token.
func wantsValue(t syntax.Token) bool {
	switch t.Kind {
	case syntax.Operator, syntax.Comma:
		return true
	case syntax.Open:
		return t.Text != "{"
	case syntax.Keyword:
		return t.Text != "else" && t.Text != "do"
	}
	return t.Text == "await"
}

// statementEnd returns the end of a statement, with its semicolon, if it ends there: with its line, a
// semicolon, or the block around it. An end of 0 means that there is no statement.
func (i *importRemover) statementEnd(end int) int {
	t := i.token(end)
	switch {
	case end == 0:
		return i.at
	case t.Kind == syntax.Semicolon && !t.Newline:
		return end + 1
	case t.Kind == syntax.End, t.Text == "}":
		return end
	case t.Newline && (t.Kind != syntax.Operator || t.Text == "++" || t.Text == "--" || t.Text == "!" || t.Text == "~") && t.Kind != syntax.Comma && !i.continues(t):
		return end
	}
	return i.at
}

// continues reports whether a token on the next line continues the expression: the value is called,
// read from, or compared.
func (i *importRemover) continues(t syntax.Token) bool {
	value := i.tokens[i.at].Text != "import" || i.token(i.at+1).Text == "("
	return value && (t.Text == "(" || t.Text == "[" || t.Text[0] == '`' || t.Text == "in" || t.Text == "instanceof")
}

// lineOf returns the end of the line of an import, as in Python: no other statement starts with
// that word. It returns 0 if a bracket opens there, or if the word is a value.
func (i *importRemover) lineOf(at int) int {
	if t := i.token(at); t.Text == "." || t.Text == "(" || t.Text == ":" || t.Text == "=" {
		return 0
	}
	for ; ; at++ {
		switch t := i.token(at); {
		case t.Newline, t.Kind == syntax.End, t.Kind == syntax.Semicolon, t.Text == "}":
			return at
		case t.Kind == syntax.Open, t.Kind == syntax.Close:
			return 0
		}
	}
}

// pythonFrom returns the end of from x import a, b: the end of its line, or the bracket that
// closes the list. It returns 0 for anything else.
func (i *importRemover) pythonFrom(at int) int {
	for ; i.token(at).Text != "import"; at++ {
		if t := i.token(at); t.Newline || t.Kind != syntax.Word && (t.Kind != syntax.Operator || strings.Trim(t.Text, ".") != "") {
			return 0
		}
	}
	word := i.token(at)
	at++
	switch t := i.token(at); {
	case word.Newline, word.Member && (t.Newline || t.Kind != syntax.Word && t.Text != "*" && t.Text != "("):
		return 0 // from.import is a value
	case t.Newline || t.Text != "(":
		return i.lineOf(at)
	}
	for at++; i.token(at).Kind == syntax.Word || i.token(at).Kind == syntax.Comma; at++ {
	}
	if i.token(at).Text != ")" {
		return 0
	}
	return at + 1
}

// aliasEnd returns the index after as name, which is optional.
func (i *importRemover) aliasEnd(at int) int {
	if t := i.token(at); t.Text == "as" && !t.Newline && i.token(at+1).Kind == syntax.Word {
		return at + 2
	}
	return at
}

// jsImport returns the end of "y", x from "y", or x = require("y"); 0 for anything else.
func (i *importRemover) jsImport(at int) int {
	if isString(i.token(at)) {
		return i.aliasEnd(i.attributes(at + 1))
	}
	if i.token(at).Kind == syntax.Word && i.token(at+1).Text == "=" {
		return i.requireDeclarations(at)
	}
	for open := false; ; at++ {
		switch t := i.token(at); {
		case t.Text == "from" && isString(i.token(at+1)):
			if open {
				return 0
			}
			return i.attributes(at + 2)
		case t.Text == "{" && !open, t.Text == "}" && open:
			open = !open
		case t.Kind == syntax.Word, t.Kind == syntax.Comma, t.Text == "*", t.Text == "default":
		case isString(t) && i.token(at+1).Text == "as":
		default:
			return 0
		}
	}
}

// attributes returns the index after with { … }, which is optional.
func (i *importRemover) attributes(at int) int {
	if t := i.token(at); t.Newline || t.Text != "with" && t.Text != "assert" || i.token(at+1).Text != "{" {
		return at
	}
	for at += 2; i.token(at).Kind != syntax.End; at++ {
		if i.token(at).Text == "}" {
			return at + 1
		}
	}
	return 0
}

// requireDeclarations returns the end of declarations that only call require or import(); 0 for anything else.
func (i *importRemover) requireDeclarations(at int) int {
	for n := 0; n < maxRequired; n++ {
		if at = i.target(at); at == 0 || i.token(at).Text != "=" {
			return 0
		}
		end := i.requireCall(at + 1)
		if end == 0 {
			end = i.importCall(at + 1)
		}
		if end == 0 || i.token(end).Kind != syntax.Comma {
			return end
		}
		at = end + 1
	}
	return 0
}

// requireCall returns the index after require("y"); 0 for anything else.
func (i *importRemover) requireCall(at int) int {
	if i.token(at).Text == "require" && i.token(at+1).Text == "(" && isString(i.token(at+2)) && i.token(at+3).Text == ")" {
		return at + 4
	}
	return 0
}

// importCall returns the index after import(x), or await import(x); 0 for anything else, or if x has a
// call, which must be evaluated.
func (i *importRemover) importCall(at int) int {
	if t := i.token(at); t.Text == "await" && !t.Member {
		at++
	}
	if !i.isImportCall(at) {
		return 0
	}
	end, calls := i.closingBracket(at + 1)
	if calls {
		return 0
	}
	return end
}

func (i *importRemover) isImportCall(at int) bool {
	t := i.token(at)
	return t.Kind == syntax.Keyword && t.Text == "import" && !t.Member && i.token(at+1).Text == "("
}

// closingBracket returns the index after the closing bracket for the bracket at a token, 0 if there is
// none, and whether there is a call between them.
func (i *importRemover) closingBracket(at int) (end int, calls bool) {
	for depth := 0; i.token(at).Kind != syntax.End; at++ {
		t := i.token(at)
		switch {
		case t.Kind == syntax.Open && t.Text[0] == '}': // between two holes of a template
		case t.Kind == syntax.Open:
			calls = calls || depth > 0 && t.Text[0] != '[' && (t.Text[0] != '`' || tagged(i.token(at-1)))
			depth++
		case t.Kind == syntax.Close:
			depth--
		case t.Text[0] == '`', t.Text == "await", t.Text == "yield", t.Text == "=":
			calls = calls || depth > 0 && (t.Text[0] != '`' || tagged(i.token(at-1)))
		}
		if depth == 0 {
			return at + 1, calls
		}
	}
	return 0, calls
}

// tagged reports whether a template after a token is a tagged template.
func tagged(before syntax.Token) bool {
	return before.Kind == syntax.Word || before.Kind == syntax.Operand || before.Kind == syntax.Close
}

// isRequireCall reports whether require(x) is at a token, in code without its own require. A list
// of arguments, or of parameters, does not count.
func (i *importRemover) isRequireCall(at int) bool {
	t := i.token(at)
	if t.Text != "require" || t.Member || i.token(at+1).Text != "(" || i.hasOwnRequire() {
		return false
	}
	end, _ := i.closingBracket(at + 1)
	depth := 0
	for n := at + 1; n < end; n++ {
		switch t := i.token(n); {
		case t.Kind == syntax.Open && t.Text[0] != '}':
			depth++
		case t.Kind == syntax.Close:
			depth--
		case depth == 1 && (t.Kind == syntax.Comma || t.Text == ":" || t.Text == "..."):
			return false
		}
	}
	return end > at+3
}

// hasOwnRequire reports whether the code uses the word require for anything but calls.
func (i *importRemover) hasOwnRequire() bool {
	if i.ownRequire == nil {
		owns := false
		for n, t := range i.tokens {
			if t.Text != "require" || t.Member {
				continue
			}
			declared := n > 0 && (i.tokens[n-1].Text == "function" || i.tokens[n-1].Text == "*")
			asked := n > 0 && i.tokens[n-1].Text == "typeof"
			owns = owns || declared || !asked && i.token(n+1).Text != "("
		}
		i.ownRequire = &owns
	}
	return *i.ownRequire
}

// expression removes import(), import.meta and require() that are part of a statement.
func (i *importRemover) expression(text string) {
	t := i.token(i.at)
	if (t.Kind != syntax.Keyword || t.Text != "import" || t.Member) && !i.isRequireCall(i.at) {
		return
	}
	switch next := i.token(i.at + 1); {
	case next.Text == "." && i.token(i.at+2).Text == "meta":
		i.replace(i.at+3, anything)
	case next.Text == "(":
		end, calls := i.closingBracket(i.at + 1)
		switch {
		case end == 0, i.token(end).Text == "{" && !i.token(end).Newline: // a method of that name
		case calls:
			i.removed = append(i.removed, removedImport{syntax.Span{Start: t.Start, End: t.End}, anything})
		case canHold(text[t.Start:i.tokens[end-1].End], nothing):
			i.replace(end, nothing)
		default:
			i.replace(end, anything)
		}
	}
}

// canHold reports whether a text can be replaced by other without crossing a line end.
func canHold(text, other string) bool {
	end := strings.IndexAny(text, "\r\n")
	return len(text) >= len(other) && (end < 0 || end >= len(other))
}

// replace records the replacement of the tokens up to end.
func (i *importRemover) replace(end int, instead string) {
	i.removed = append(i.removed, removedImport{syntax.Span{Start: i.tokens[i.at].Start, End: i.tokens[end-1].End}, instead})
}

// target returns the index after a name or a pattern in braces.
func (i *importRemover) target(at int) int {
	if i.token(at).Kind == syntax.Word {
		return at + 1
	}
	if i.token(at).Text != "{" {
		return 0
	}
	for at++; i.token(at).Kind != syntax.End; at++ {
		switch t := i.token(at); {
		case t.Text == "}":
			return at + 1
		case t.Kind == syntax.Word, t.Kind == syntax.Comma, t.Text == ":", t.Text == "default":
		default:
			return 0
		}
	}
	return 0
}

func (i *importRemover) remove(end int) {
	for _, t := range i.tokens[i.at:end] {
		if t.Kind == syntax.Word {
			i.names[t.Text] = true
		}
	}
	i.replace(end, emptyStatement)
	m := &i.removed[len(i.removed)-1]
	for ; len(i.comments) > 0 && (end >= len(i.tokens) || i.comments[0].Start < i.tokens[end].Start); i.comments = i.comments[1:] {
		m.End = max(m.End, i.comments[0].End)
	}
}

func isString(t syntax.Token) bool {
	return t.Kind == syntax.Operand && (t.Text[0] == '"' || t.Text[0] == '\'')
}

func (i *importRemover) warnings(text diag.Text) diag.List {
	list := i.fence.warnings(text)
	for _, m := range i.removed[:min(len(i.removed), maxReports)] {
		shown := truncate.Start(strings.Join(strings.Fields(text.Body()[m.Start:m.End]), " "), maxShownImport)
		list = append(list, diag.Diagnostic{
			Severity: diag.Warning, Code: source.ImportRemoved, Range: text.Range(m.Start, m.End),
			Summary: fmt.Sprintf("import statements are not needed: removed line %d: %s", text.Pos(m.Start).Line, diag.Printable(shown)),
			Detail:  "all tools are available, and nothing else can be imported",
		})
	}
	return list
}
