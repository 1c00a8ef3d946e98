package scripting

import "github.com/dop251/goja/ast"

// binding declares the names of a target and reads its initializer.
func (a *analysis) binding(n *ast.Binding) {
	a.declare(n.Target)
	if n.Initializer != nil {
		if _, plain := n.Target.(*ast.Identifier); plain {
			a.handOn(n.Initializer)
		}
		a.destructured(n.Target, n.Initializer)
		a.unpack(n.Target, n.Initializer)
		a.answer(n)
		a.node(n.Initializer)
	}
}

func (a *analysis) name(id *ast.Identifier) {
	if id != nil {
		name := id.Name.String()
		a.again[name] = a.bound[name]
		a.bound[name] = true
	}
}

// declare declares every name of a pattern; defaults and computed keys in it are read.
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
			a.declareProperty(property)
		}
		a.declare(n.Rest)
	}
}

func (a *analysis) declareProperty(property ast.Property) {
	switch p := property.(type) {
	case *ast.PropertyShort:
		a.names[p.Name.Name.String()] = true
		a.name(&p.Name)
		if p.Initializer != nil {
			a.node(p.Initializer)
		}
	case *ast.PropertyKeyed:
		a.computed = a.computed || p.Computed && !named(p.Key)
		a.node(p.Key)
		a.declare(p.Value)
	}
}

// destructured notices the members that { a, b: c } = vars reads.
func (a *analysis) destructured(target, source ast.Node) {
	pattern, ok := target.(*ast.ObjectPattern)
	id, named := source.(*ast.Identifier)
	if ok && named {
		a.members = append(a.members, taken(id.Name.String(), pattern)...)
	}
}

// taken returns the members of an object that a pattern names.
func taken(object string, pattern *ast.ObjectPattern) []member {
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

// eachTarget calls f for each name that a target gives a value to.
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
