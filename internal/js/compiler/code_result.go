package compiler

import (
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// addImplicitReturn makes agent code return the value of its last statement, if that is an
// expression, or ends in one through if, else, try or catch. Code that is only a function is
// reported elsewhere.
func (c *compilation) addImplicitReturn(function *ast.FunctionLiteral) {
	statements := c.statements(function)
	if len(statements) == 1 {
		if s, ok := statements[0].(*ast.ExpressionStatement); ok && isFunction(s.Expression) {
			return
		}
	}
	if last := lastOf(statements); last >= 0 {
		if block, ok := statements[last].(*ast.BlockStatement); ok {
			c.checkObject(block)
		}
		statements[last] = returnLast(statements[last])
	}
}

func isFunction(e ast.Node) bool {
	switch e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return true
	}
	return false
}

// lastOf returns the index of the last statement that is not empty; -1 if there is none.
func lastOf(statements []ast.Statement) int {
	for last := len(statements) - 1; last >= 0; last-- {
		if _, empty := statements[last].(*ast.EmptyStatement); !empty {
			return last
		}
	}
	return -1
}

// returnLast returns a statement that returns the value of its last expression. Loops and switch
// statements are not changed.
func returnLast(statement ast.Statement) ast.Statement {
	switch s := statement.(type) {
	case *ast.ExpressionStatement:
		return &ast.ReturnStatement{Return: s.Idx0(), Argument: s.Expression}
	case *ast.BlockStatement:
		if last := lastOf(s.List); last >= 0 {
			s.List[last] = returnLast(s.List[last])
		}
	case *ast.IfStatement:
		if s.Consequent = returnLast(s.Consequent); s.Alternate != nil {
			s.Alternate = returnLast(s.Alternate)
		}
	case *ast.TryStatement:
		returnLast(s.Body)
		if s.Catch != nil {
			returnLast(s.Catch.Body)
		}
	}
	return statement
}

// asObject is the advice for an object that is parsed as a block.
const asObject = "an object that is the result is written in parentheses: ({ … }), or return { … }"

// checkObject reports a block at the end of the code that looks like an object.
func (c *compilation) checkObject(block *ast.BlockStatement) {
	at, ok := c.origin.rangeAt(int(block.LeftBrace) - 1)
	begins, ends, found := objectAtEnd(c.text)
	if !ok || !found || c.src.Text.Pos(begins).Byte != at.Start.Byte {
		return
	}
	c.fail(c.src.Text.Range(begins, ends), "code-block", "this is a block of statements, not an object", asObject)
}

// objectAtEnd returns the range of the braces at the end of a text, if their content could be an
// object. Texts of more than [maxWithoutTrial] bytes are not checked.
func objectAtEnd(text string) (begins, ends int, found bool) {
	l := syntax.Lexer{Src: text}
	var open []int
	for t := l.Next(); t.Kind != syntax.End; t = l.Next() {
		switch {
		case t.Kind == syntax.Semicolon:
		case t.Text == "{":
			open, found = append(open, t.Start), false
		case t.Text == "}" && len(open) > 0:
			begins, ends, found = open[len(open)-1], t.End, true
			open = open[:len(open)-1]
		default:
			found = false
		}
	}
	if !found || len(open) > 0 || ends-begins > maxWithoutTrial || strings.TrimSpace(text[begins+1:ends-1]) == "" {
		return 0, 0, false
	}
	tree, err := parser.ParseFile(nil, compiledName, "async()=>("+text[begins:ends]+")", 0, parser.WithDisableSourceMaps)
	return begins, ends, err == nil && len(tree.Body) == 1
}

// adviseObject returns the advice for a syntax error within what looks like an object; "" for other
// errors.
func (c *compilation) adviseObject(at diag.Range) string {
	if c.src.Kind != source.Code {
		return ""
	}
	begins, ends, found := objectAtEnd(c.text)
	if !found || at.Start.Byte < c.src.Text.Pos(begins).Byte || at.Start.Byte > c.src.Text.Pos(ends).Byte {
		return ""
	}
	return asObject
}

// undeclared returns the names that are assigned and not declared in a scope that all of the code
// can access.
func (c *compilation) undeclared(function *ast.FunctionLiteral, a *analysis) map[string]bool {
	declared := map[string]bool{}
	declare := func(name string) { declared[name] = true }
	for _, list := range function.DeclarationList {
		for _, b := range list.List {
			eachTarget(b.Target, declare)
		}
	}
	for _, statement := range c.statements(function) {
		switch s := statement.(type) {
		case *ast.LexicalDeclaration:
			for _, b := range s.List {
				eachTarget(b.Target, declare)
			}
		case *ast.FunctionDeclaration:
			declare(s.Function.Name.Name.String())
		case *ast.ClassDeclaration:
			declare(s.Class.Name.Name.String())
		}
	}
	undeclared := map[string]bool{}
	for name := range a.reassigned {
		if !declared[name] && !c.isDefined(name) {
			undeclared[name] = true
		}
	}
	return undeclared
}

// declaredByValue records the value of x = search(…), if it is the only assignment to x.
func (a *analysis) declaredByValue(statement ast.Statement) {
	s, ok := statement.(*ast.ExpressionStatement)
	if !ok {
		return
	}
	assign, ok := s.Expression.(*ast.AssignExpression)
	if !ok || assign.Operator != token.ASSIGN {
		return
	}
	if id, ok := assign.Left.(*ast.Identifier); ok && a.undeclared[id.Name.String()] && a.reassigned[id.Name.String()] == 1 {
		delete(a.assigned, id.Name.String())
		a.noteResult(&ast.Binding{Target: id, Initializer: assign.Right})
	}
}

// statements returns the statements of the author in a function with an implicit return.
func (c *compilation) statements(function *ast.FunctionLiteral) []ast.Statement {
	if c.origin.lowered {
		return userStatements(function)
	}
	return function.Body.List[0].(*ast.BlockStatement).List
}

// declareAssigned declares, around the code, names that it assigns and does not declare.
func (c *compilation) declareAssigned(function *ast.FunctionLiteral, names map[string]bool) {
	if len(names) == 0 {
		return
	}
	declaration := &ast.LexicalDeclaration{Idx: function.Body.LeftBrace, Token: token.LET}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		declaration.List = append(declaration.List, &ast.Binding{Target: &ast.Identifier{Name: unistring.NewFromString(name), Idx: function.Body.LeftBrace}})
	}
	function.Body.List = append([]ast.Statement{declaration}, function.Body.List...)
}
