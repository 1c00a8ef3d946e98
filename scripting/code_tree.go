package scripting

import (
	"maps"
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// analyse walks the tree of a body. Names to which code gives values without
// declaring them count as declared.
func (c *compilation) analyse(function *ast.FunctionLiteral) *analysis {
	if c.src.Kind != Code {
		return analyse(function.Body)
	}
	a := newAnalysis()
	a.root = function.Body
	a.groups = map[string]bool{}
	for _, group := range c.names().groups {
		a.groups[group] = true
	}
	a.node(function.Body)
	a.undeclared = c.undeclared(function, a)
	for _, statement := range c.statements(function) {
		a.declaredByValue(statement)
	}
	for name := range a.undeclared {
		a.bound[name] = true
	}
	return a
}

// undeclared returns the names that are given values and declared nowhere that all
// of the code could see.
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

// declaredByValue notices what x = search(…) gives the one value to that x has.
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
		a.answer(&ast.Binding{Target: id, Initializer: assign.Right})
	}
}

// statements returns those that the author wrote in a function that is complete.
func (c *compilation) statements(function *ast.FunctionLiteral) []ast.Statement {
	if c.origin.lowered {
		return written(function)
	}
	return function.Body.List[0].(*ast.BlockStatement).List
}

// declareAssigned declares, around the code, the names that it gives values to
// and does not declare.
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
