package compiler

import (
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

func (a *analysis) name(id *ast.Identifier) {
	if id != nil {
		name := id.Name.String()
		a.redeclared[name] = a.bound[name]
		a.bound[name] = true
	}
}

// declare declares every name of a pattern. Defaults and computed keys in it are references.
func (a *analysis) declare(target ast.Node) {
	switch n := target.(type) {
	case *ast.Identifier:
		a.name(n)
	case *ast.AssignExpression:
		a.declare(n.Left)
		a.node(n.Right)
	case *ast.ArrayPattern:
		for _, element := range n.Elements {
			a.declare(element)
		}
		a.declare(n.Rest)
	case *ast.ObjectPattern:
		for _, property := range n.Properties {
			switch p := property.(type) {
			case *ast.PropertyShort:
				a.names[p.Name.Name.String()] = true
				a.name(&p.Name)
				if p.Initializer != nil {
					a.node(p.Initializer)
				}
			case *ast.PropertyKeyed:
				a.hasComputedAccess = a.hasComputedAccess || p.Computed && !isLiteralKey(p.Key)
				a.node(p.Key)
				a.declare(p.Value)
			}
		}
		a.declare(n.Rest)
	}
}

// destructured records the members that { a, b: c } = vars reads.
func (a *analysis) destructured(target, source ast.Node) {
	pattern, ok := target.(*ast.ObjectPattern)
	id, named := source.(*ast.Identifier)
	if ok && named {
		a.members = append(a.members, destructuredMembers(id.Name.String(), pattern)...)
	}
}

// destructuredMembers returns the members of an object that a pattern names.
func destructuredMembers(object string, pattern *ast.ObjectPattern) []member {
	var members []member
	for _, property := range pattern.Properties {
		switch p := property.(type) {
		case *ast.PropertyShort:
			members = append(members, member{object, p.Name.Name.String(), p.Name.Idx, p.Name.Idx1()})
		case *ast.PropertyKeyed:
			if key, ok := p.Key.(*ast.StringLiteral); ok {
				members = append(members, member{object, key.Value.String(), key.Idx, key.Idx1()})
			}
		}
	}
	return members
}

// eachTarget calls f for each name that an assignment target changes.
func eachTarget(target ast.Node, f func(name string)) {
	switch n := target.(type) {
	case *ast.Identifier:
		f(n.Name.String())
	case *ast.AssignExpression: // with a default
		eachTarget(n.Left, f)
	case *ast.ArrayPattern:
		for _, element := range n.Elements {
			eachTarget(element, f)
		}
		eachTarget(n.Rest, f)
	case *ast.ObjectPattern:
		for _, property := range n.Properties {
			switch p := property.(type) {
			case *ast.PropertyShort:
				f(p.Name.Name.String())
			case *ast.PropertyKeyed:
				eachTarget(p.Value, f)
			}
		}
		eachTarget(n.Rest, f)
	}
}

func (a *analysis) reassign(target ast.Node) {
	eachTarget(target, func(name string) { a.reassigned[name]++ })
}

// alias records const alias = object, and values that are otherwise shared.
func (a *analysis) alias(alias string, value ast.Expression) {
	id, ok := value.(*ast.Identifier)
	if _, again := a.aliases[alias]; !ok || again {
		a.noteShared(value)
		return
	}
	a.aliases[alias] = id.Name.String()
}

// countReads counts the names among expressions that are only read.
func (a *analysis) countReads(expressions ...ast.Expression) {
	for _, e := range expressions {
		if optional, ok := e.(*ast.Optional); ok {
			e = optional.Expression
		}
		if id, ok := e.(*ast.Identifier); ok {
			a.read[id.Name.String()]++
		}
	}
}

// noteWrites records the names with members that the target may change.
func (a *analysis) noteWrites(target ast.Node) {
	var look func(ast.Node)
	look = func(n ast.Node) {
		if id, ok := n.(*ast.Identifier); ok {
			a.written[id.Name.String()] = true
		}
		syntax.Children(n, look)
	}
	look(target)
}

// isLeaked reports whether a member of an object may be set through another name: through an alias
// that is used for more than reading members.
func (a *analysis) isLeaked(object string) bool {
	for alias, of := range a.aliases {
		if of == object && (a.written[alias] || a.shared[alias] || a.reassigned[alias] > 0 || a.mentions[alias] != a.read[alias]) {
			return true
		}
	}
	return a.shared[object]
}

// nearName suggests a name for an undefined name at a position: one that the script declares and
// that is in scope, or an input, or a global. It returns "" if none is similar.
func (c *compilation) nearName(a *analysis, name string, at file.Idx, globals []string) string {
	if guess := diag.DidYouMean(name, c.inScope(a, at)); guess != "" {
		return guess
	}
	if input := diag.Suggest(name, c.src.Inputs); input != "" && c.src.Kind != source.Hook {
		return `did you mean "` + c.inputGlobal() + "." + input + `"?`
	}
	return diag.DidYouMean(name, globals)
}

// inScope returns the names that the author declares and that are in scope at a position.
func (c *compilation) inScope(a *analysis, at file.Idx) []string {
	if a.root == nil {
		return nil // the script was not parsed
	}
	s := scope{at: at}
	s.node(a.root)
	text := c.text
	// The author cannot use names that lowering creates.
	return slices.DeleteFunc(s.names, func(name string) bool { return !strings.Contains(text, name) })
}

// scope collects the names that are in scope at a position.
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
	syntax.Children(n, s.node)
}

func (s *scope) named(id *ast.Identifier) {
	if id != nil {
		s.declare(id.Name.String())
	}
}

func (s *scope) in(n ast.Node) bool { return n.Idx0() <= s.at && s.at < n.Idx1() }
