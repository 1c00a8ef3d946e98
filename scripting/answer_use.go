package scripting

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// What is wrong with a promise where its value was meant.
const (
	promiseAsText    = "as text a promise is [object Promise]"
	promiseAsList    = "a promise is no list"
	promiseAsJSON    = "as JSON a promise is {}"
	promiseAsObject  = "a promise has no members of its own"
	promiseUnfolded  = "there is nothing in a promise to unfold"
	promiseInConsole = "what is printed of a promise is not its value"
)

// argument is what a function is given that can do nothing with a promise.
type argument struct {
	function string // or the object that the function is a member of
	value    ast.Expression
	wrong    string
}

// used notices the promise of an answer, or a variable, that is used as what it is not.
func (a *analysis) used(n ast.Expression, wrong string) {
	if id, ok := n.(*ast.Identifier); ok {
		a.holding = append(a.holding, member{id.Name.String(), wrong, n.Idx0(), n.Idx1()})
	} else if root := a.answering(n); root != "" {
		a.whole = append(a.whole, member{root, wrong, n.Idx0(), n.Idx1()})
	}
}

// use notices what becomes text, or is gone through.
func (a *analysis) use(n ast.Node) {
	switch n := n.(type) {
	case *ast.TemplateLiteral:
		if n.Tag == nil {
			for _, part := range n.Expressions {
				a.used(part, promiseAsText)
			}
		}
	case *ast.BinaryExpression:
		if n.Operator == token.PLUS {
			a.used(n.Left, promiseAsText)
			a.used(n.Right, promiseAsText)
		}
	case *ast.ForOfStatement:
		a.used(n.Source, promiseAsList)
	case *ast.SpreadElement:
		a.used(n.Expression, promiseUnfolded)
	}
}

// unpack notices what [a, b] = x and { a, b } = x take of an answer.
func (a *analysis) unpack(target, source ast.Node) {
	value, _ := source.(ast.Expression)
	switch target := target.(type) {
	case *ast.ArrayPattern:
		a.used(value, promiseAsList)
	case *ast.ObjectPattern:
		if root := a.answering(value); root != "" {
			a.unpacked = append(a.unpacked, taken(root, target)...)
		}
	}
}

// pass notices the arguments of functions of the language that use them as text, as a list
// or as an object.
func (a *analysis) pass(n *ast.CallExpression) {
	function := staticPath(n.Callee)
	wrong, most := "", 1
	switch function {
	case "JSON.stringify":
		wrong = promiseAsJSON
	case "String":
		wrong = promiseAsText
	case "Array.from":
		wrong = promiseAsList
	case "Object.keys", "Object.values", "Object.entries":
		wrong = promiseAsObject
	case "print", "console.log", "console.info", "console.debug", "console.warn", "console.error":
		wrong, most = promiseInConsole, len(n.ArgumentList)
	default:
		return
	}
	root := n.Callee
	if dot, ok := root.(*ast.DotExpression); ok {
		root = dot.Left
	}
	for _, value := range n.ArgumentList[:min(most, len(n.ArgumentList))] {
		a.passed = append(a.passed, argument{staticPath(root), value, wrong})
	}
}

// take notices the arguments of functions that are what their names say.
func (a *analysis) take() {
	for _, p := range a.passed {
		if _, free := a.free(p.function); free {
			a.used(p.value, p.wrong)
		}
	}
}
