package compiler

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// A script in a file of its own may be a module, whose default export is a function. It is compiled
// like other scripts: the declaration of a constant replaces the words export default, so that all
// positions stay, and mainCall at the end calls the function. The first argument is the input; the
// members of the second, the context, are globals of the script.
const (
	// MainName is the name of the constant. With = it is as long as default.
	MainName = "$mcpd$"
	mainCall = "\n;return " + MainName + "();"
	// overloadName is the name of overload signatures. With a space it is as long as function.
	overloadName = MainName + "o"
)

const mainAdvice = "write export default async function (input, ctx) { … } or an arrow function, and a semicolon after it"

// spaces matches white space and comments.
const spaces = `(?:\s|/\*(?s:.*?)\*/|//[^\n]*\n)*`

// In TypeScript, a module also exports types, which leave nothing in the script, and its default
// export may have overload signatures.
var (
	exportedType = regexp.MustCompile(`^` + spaces + `(?:interface|type|declare)\b` + spaces + `[\pL$_\\]`)
	signature    = regexp.MustCompile(`^` + spaces + `(function)` + spaces + `([\pL\pN$_]*)` + spaces + `[(<]`)
)

var asyncGenerator = regexp.MustCompile(`^` + spaces + `(?:\(` + spaces + `)*async` + spaces + `function` + spaces + `\*`)

// declareMain replaces export default. It reports an error if the script cannot be a module.
func (c *compilation) declareMain(f syntax.Features) bool {
	if !c.isFile() {
		c.reportExports(f.Exports[0])
		return false
	}
	main, signatures := syntax.Span{}, 0
	for main.End == 0 && signatures < len(f.Defaults) {
		if signatures == len(f.Defaults)-1 || !c.declareOverload(f.Defaults[signatures]) {
			main = f.Defaults[signatures]
		} else {
			signatures++
		}
	}
	for _, word := range f.Exports {
		switch {
		case main.End > 0 && word.Start == main.Start, slices.ContainsFunc(f.Defaults[:signatures], func(s syntax.Span) bool { return s.Start == word.Start }):
			continue
		case c.src.Language == source.TS && exportedType.MatchString(c.text[word.End:]):
			c.text = c.text[:word.Start] + blank(c.text[word.Start:word.End]) + c.text[word.End:]
			continue
		}
		d := diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(word.Start, word.End), Summary: "a module exports only its default", Detail: "drop export here; only imported files have other exports, and TypeScript may export interface and type"}
		if main.End == 0 {
			d.Summary, d.Detail = "the module has no default export", mainAdvice
		}
		c.reject(d)
		return false
	}
	if main.End == 0 {
		c.reject(diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(f.Exports[0].Start, f.Exports[0].End), Summary: "the module has no default export", Detail: mainAdvice})
		return false
	}
	if asyncGenerator.MatchString(c.text[main.End:]) { // lowering hides it
		c.reject(diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(main.Start, main.End), Summary: "the default export is not a function", Detail: mainAdvice})
		return false
	}
	start, end := main.Start+len("export"), main.End-len("default")
	c.text = c.text[:main.Start] + "const " + c.text[start:end] + MainName + "=" + c.text[main.End:]
	c.end = mainCall
	return true
}

// declareOverload replaces export default function, which starts an overload signature, by the start
// of a named function at the same position. The compiler of TypeScript drops it, unless it has a body.
// declareOverload returns false for other exports.
func (c *compilation) declareOverload(words syntax.Span) bool {
	found := signature.FindStringSubmatchIndex(c.text[words.End:])
	head := c.text[words.Start:words.End]
	if c.src.Language != source.TS || found == nil || strings.Contains(head, "\n") {
		return false
	}
	word, name := words.End+found[2], words.End+found[4]
	c.text = c.text[:words.Start] + "function" + strings.Repeat(" ", len(head)-len("function")) +
		c.text[words.End:word] + overloadName + " " + c.text[word+len("function"):name] +
		strings.Repeat(" ", found[5]-found[4]) + c.text[words.End+found[5]:]
	return true
}

// isFile reports whether the script is a file of its own, which may be a module.
func (c *compilation) isFile() bool {
	_, language, err := formatOf(c.src.Path)
	return err == nil && language == c.src.Language && !strings.HasSuffix(c.src.Path, ".json") && c.src.Kind != source.Code
}

// mainFunction is the default export of a module.
type mainFunction struct {
	literal    ast.Expression
	name       *ast.Identifier // or nil
	parameters *ast.ParameterList
	body       *ast.BlockStatement // nil for an arrow function with an expression
	call       *ast.CallExpression // mainCall
	others     []ast.Statement     // of the module
}

// mainOf returns the default export of a module. It has no parameters unless it is a function.
func mainOf(function *ast.FunctionLiteral) *mainFunction {
	m := &mainFunction{}
	for _, statement := range userStatements(function) {
		switch s := statement.(type) {
		case *ast.LexicalDeclaration:
			if isNamed(s.List[0].Target, MainName) && len(s.List) == 1 {
				m.literal = s.List[0].Initializer
				continue
			}
		}
		m.others = append(m.others, statement)
	}
	if last := len(m.others) - 1; last >= 0 { // the author may have written the same before
		if s, ok := m.others[last].(*ast.ReturnStatement); ok {
			if call, ok := s.Argument.(*ast.CallExpression); ok && isNamed(call.Callee, MainName) {
				m.call, m.others = call, m.others[:last]
			}
		}
	}
	switch f := m.literal.(type) {
	case *ast.FunctionLiteral:
		if !f.Generator {
			m.name, m.parameters, m.body = f.Name, f.ParameterList, f.Body
		}
	case *ast.ArrowFunctionLiteral:
		m.parameters = f.ParameterList
		m.body, _ = f.Body.(*ast.BlockStatement)
	}
	return m
}

func isNamed(n ast.Node, name unistring.String) bool {
	id, ok := n.(*ast.Identifier)
	return ok && id.Name == name
}

// checkMain reports a default export that is not a function, or that mcpd cannot call.
func (c *compilation) checkMain(m *mainFunction, plain *analysis) bool {
	at, summary, detail := file.Idx(c.origin.body.to+1), "", mainAdvice
	if m.literal != nil {
		at = m.literal.Idx0()
	}
	switch {
	case m.parameters == nil || m.call == nil:
		summary = "the default export is not a function"
	case len(m.parameters.List) > 2 || m.parameters.Rest != nil:
		summary, detail = "the default export has more than two parameters", "write (input, ctx)"
	}
	if uses := func(n ast.Node) bool { return isNamed(n, MainName) }; m.literal != nil && contains(m.literal, uses, func(ast.Node) bool { return false }) {
		summary, detail = MainName+" is reserved", "use another name"
	}
	for _, s := range m.others {
		if contains(s, func(n ast.Node) bool { return isNamed(n, overloadName) }, func(ast.Node) bool { return false }) { // with a body
			at, summary, detail = startOf(s), "the module has two default exports", "keep one; a signature has no body"
		} else if m.parameters != nil && contains(s, func(n ast.Node) bool { return isNamed(n, MainName) }, func(ast.Node) bool { return false }) {
			at, summary, detail = startOf(s), MainName+" is reserved", "use another name"
		} else if contains(s, func(n ast.Node) bool { _, is := n.(*ast.ReturnStatement); return is }, isFunction) {
			at, summary, detail = startOf(s), "the module returns a value outside of its function", "return it in the function: "+mainAdvice
		} else if m.name != nil && !plain.redeclared[m.name.Name.String()] && contains(s, func(n ast.Node) bool { return isNamed(n, m.name.Name) }, func(ast.Node) bool { return false }) {
			at, summary, detail = startOf(s), m.name.Name.String()+" is the default export, which only mcpd calls", "declare a function of another name, which both call"
		}
	}
	if summary == "" {
		return true
	}
	c.report(diag.Diagnostic{Code: "script-syntax", Summary: summary, Detail: detail}, at, at+1)
	if !c.list.HasErrors() { // the position is unknown
		c.fail(c.src.Text.All(), "script-syntax", summary, detail)
	}
	return false
}

// firstGlobal returns the global that is the first argument.
func (c *compilation) firstGlobal() string {
	if c.src.Kind == source.Complete {
		return "value"
	}
	return c.inputGlobal()
}

// contextNames returns the possible members of the context. Those without a grant are absent.
func (c *compilation) contextNames() []string {
	names := slices.Concat(kindGlobals(c.src.Kind), []string{"log", "vars", "elicit", "sample", "roots", "ask"}, grantingGlobals())
	return slices.DeleteFunc(names, func(name string) bool { return name == c.firstGlobal() })
}

// passArguments adds the arguments to the call of the main function. They are constants outside of
// the block with the module, which may declare variables with the names of globals.
func (c *compilation) passArguments(function *ast.FunctionLiteral, m *mainFunction, found *analysis) {
	at := m.call.LeftParenthesis
	identifier := func(name string) *ast.Identifier {
		return &ast.Identifier{Name: unistring.NewFromString(name), Idx: at}
	}
	var input ast.Expression = &ast.NullLiteral{Idx: at, Literal: "null"}
	if found.isReferenced(c.firstGlobal()) {
		input = identifier(c.firstGlobal())
	}
	context := &ast.ObjectLiteral{LeftBrace: at, RightBrace: at}
	for _, name := range c.contextNames() {
		if found.isReferenced(name) && c.isDefined(name) {
			context.Value = append(context.Value, &ast.PropertyShort{Name: *identifier(name)})
		}
	}
	constants := &ast.LexicalDeclaration{Idx: function.Body.LeftBrace, Token: token.CONST}
	for i, value := range []ast.Expression{input, context} {
		name := MainName + strconv.Itoa(i)
		constants.List = append(constants.List, &ast.Binding{Target: identifier(name), Initializer: value})
		m.call.ArgumentList = append(m.call.ArgumentList, identifier(name))
	}
	function.Body.List = append([]ast.Statement{constants}, function.Body.List...)
}
