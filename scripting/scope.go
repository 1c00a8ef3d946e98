package scripting

import (
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
)

// nearName asks for the name that an undefined name at a place was most likely meant to
// be: one that the body declares and that is in scope there, else an input, else a
// global. It returns "" if none is near.
func (c *compilation) nearName(found *analysis, name string, at file.Idx, globals []string) string {
	if guess := diag.DidYouMean(name, c.inScope(found, at)); guess != "" {
		return guess
	}
	if input := diag.Suggest(name, c.src.Inputs); input != "" && c.src.Kind != Hook {
		return `did you mean "` + c.subject() + "." + input + `"?`
	}
	return diag.DidYouMean(name, globals)
}

// inScope returns the names that the author declares and that are in scope at a place.
func (c *compilation) inScope(found *analysis, at file.Idx) []string {
	if found.root == nil {
		return nil // the body was not parsed
	}
	s := scope{at: at}
	s.node(found.root)
	text := c.text
	// Lowering makes up names, which the author cannot write.
	return slices.DeleteFunc(s.names, func(name string) bool { return !strings.Contains(text, name) })
}

// scope collects the names that are in scope at a place of a tree.
type scope struct {
	at    file.Idx
	names []string
}

func (s *scope) declare(name string) { s.names = append(s.names, name) }

func (s *scope) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.FunctionDeclaration:
		s.named(n.Function.Name)
	case *ast.ClassDeclaration:
		s.named(n.Class.Name)
	case *ast.FunctionLiteral:
		if !s.in(n) {
			return
		}
		s.named(n.Name)
	case *ast.CatchStatement:
		if !s.in(n.Body) {
			return
		}
		eachTarget(n.Parameter, s.declare)
	case *ast.ArrowFunctionLiteral, *ast.BlockStatement, *ast.ForStatement, *ast.ForInStatement, *ast.ForOfStatement, *ast.ClassLiteral:
		if !s.in(n) {
			return
		}
	case *ast.Binding:
		eachTarget(n.Target, s.declare)
	}
	children(n, s.node)
}

func (s *scope) named(id *ast.Identifier) {
	if id != nil {
		s.declare(id.Name.String())
	}
}

// in reports whether the place is in a node.
func (s *scope) in(n ast.Node) bool { return n.Idx0() <= s.at && s.at < n.Idx1() }
