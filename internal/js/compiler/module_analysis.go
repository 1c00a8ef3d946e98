package compiler

import (
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/unistring"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
)

// analyzeMain returns the analysis of a module. It reads a copy of the tree in which the first
// parameter, and members of the context, are the globals that they stand for. plain is the analysis
// of the tree itself. A module that uses the context in other ways may use all its members.
func (c *compilation) analyzeMain(m *mainFunction, plain *analysis) *analysis {
	var input, context ast.BindingTarget
	// Other functions, and calls by the function itself, may use parameters for other values.
	certain := !plain.isReferenced("arguments") && (m.name == nil || !plain.isReferenced(m.name.Name.String()))
	for i, parameter := range m.parameters.List {
		certain = certain && parameter.Initializer == nil
		if i == 0 {
			input = parameter.Target
		} else {
			context = parameter.Target
		}
	}
	copied := *c
	members, whole := []member(nil), context != nil || plain.isReferenced("arguments")
	if certain {
		members, whole = copied.contextMembers(m, context, plain)
	}
	aliases := c.contextAliases(context, plain)
	function, _ := copied.parse()
	if function == nil || c.origin.lowered && !unwrapModule(function) {
		c.fail(c.src.Text.All(), "script-internal", "the script could not be compiled", "its context cannot be analyzed")
		return plain
	}
	clone := mainOf(function)
	id, plainName := input.(*ast.Identifier)
	// In the copy, a parameter with the name of a member looks like the member.
	if plainName = plainName && certain && !plain.redeclared[id.Name.String()] && !slices.Contains(c.contextNames(), id.Name.String()); plainName {
		rename(clone.literal, id.Name, unistring.NewFromString(c.firstGlobal()))
		clone.parameters.List[0].Target = &ast.ObjectPattern{}
	}
	if context != nil && !whole {
		clone.parameters.List[1].Target = &ast.ObjectPattern{}
		for alias, member := range aliases {
			rename(clone.literal, alias, member)
		}
	}
	found := analysisOf(function.Body)
	maps.Copy(found.names, plain.names)
	use := func(name string, at file.Idx) {
		found.names[name] = true
		if _, again := found.refs[name]; !again {
			found.refs[name] = at
		}
	}
	if (input != nil || whole) && !plainName {
		use(c.firstGlobal(), m.literal.Idx0())
		if pattern, ok := input.(*ast.ObjectPattern); ok && certain && c.firstGlobal() == c.inputGlobal() {
			found.members = append(found.members, destructuredMembers(c.inputGlobal(), pattern)...)
		}
	}
	for _, name := range c.contextNames() {
		if whole && c.isDefined(name) {
			use(name, m.literal.Idx0())
		}
	}
	for _, member := range members {
		if slices.Contains(c.contextNames(), member.name) {
			use(member.name, member.start)
		} else if !whole {
			found.bound[member.object], found.bound[member.name] = true, true
			c.checkMember(member, c.contextNames(), diag.Error, "undefined-name", "the context has no member %q", "there is "+strings.Join(c.contextNames(), ", "))
		}
	}
	return found
}

// contextMembers returns the members of the context that a module uses, and whether it may use
// others. In the source of c it replaces them by globals: in ctx.log, white space replaces ctx and
// the dot.
func (c *compilation) contextMembers(m *mainFunction, context ast.BindingTarget, plain *analysis) (members []member, whole bool) {
	switch target := context.(type) {
	case nil:
		return nil, false
	case *ast.ObjectPattern:
		aliases := c.contextAliases(target, plain)
		for _, property := range target.Properties {
			switch p := property.(type) {
			case *ast.PropertyShort:
				whole = whole || p.Initializer != nil || plain.redeclared[p.Name.Name.String()]
			case *ast.PropertyKeyed:
				id, ok := p.Value.(*ast.Identifier)
				whole = whole || !ok || aliases[id.Name] == ""
			}
		}
		return destructuredMembers("ctx", target), whole || target.Rest != nil
	case *ast.Identifier:
		name, src, known := target.Name, []byte(c.origin.src), c.contextNames()
		if plain.redeclared[name.String()] {
			return nil, true
		}
		var look func(ast.Node)
		look = func(n ast.Node) {
			whole = whole || n != ast.Node(target) && isNamed(n, name)
			if use, from, to, ok := constantMember(n, name, src); ok && !plain.written[name.String()] && !isObjectPrototypeMember(use.name) {
				members = append(members, use)
				if slices.Contains(known, use.name) {
					copy(src[from:to], strings.Repeat(" ", to-from))
					copy(src[int(use.start)-1:], use.name)
				}
				return
			}
			dot, ok := n.(*ast.DotExpression)
			if !ok || !isNamed(withoutOptional(dot.Left), name) {
				syntax.Children(n, look)
				return
			}
			use := member{name.String(), dot.Identifier.Name.String(), dot.Identifier.Idx, dot.Identifier.Idx1()}
			from, to := int(dot.Left.Idx0())-1, int(use.start)-1
			members = append(members, use)
			switch {
			case strings.Trim(string(src[from+len(use.object):to]), " \t\r\n?.") != "", plain.assigned[use.object+"."+use.name], isObjectPrototypeMember(use.name):
				whole = true
			case slices.Contains(known, use.name):
				copy(src[from:to], strings.Repeat(" ", to-from))
			}
		}
		look(m.literal)
		c.origin.src = string(src)
		return members, whole
	}
	return nil, true
}

// contextAliases returns the local names of members in the pattern of the context, as in { log: l }.
// Names that may have other values are left out.
func (c *compilation) contextAliases(context ast.BindingTarget, plain *analysis) map[unistring.String]unistring.String {
	aliases := map[unistring.String]unistring.String{}
	pattern, _ := context.(*ast.ObjectPattern)
	if pattern == nil {
		return nil
	}
	for _, property := range pattern.Properties {
		keyed, _ := property.(*ast.PropertyKeyed)
		if keyed == nil {
			continue
		}
		key, literal := keyed.Key.(*ast.StringLiteral)
		alias, plainName := keyed.Value.(*ast.Identifier)
		if literal && plainName {
			if name := alias.Name.String(); !plain.redeclared[name] && !plain.targets[name] && !slices.Contains(c.contextNames(), name) {
				aliases[alias.Name] = key.Value
			}
		}
	}
	return aliases
}

// constantMember returns the member of a context in ctx["log"], and its place in the source. ok is false
// for other nodes.
func constantMember(n ast.Node, context unistring.String, src []byte) (use member, from, to int, ok bool) {
	bracket, _ := n.(*ast.BracketExpression)
	if bracket == nil || !isNamed(withoutOptional(bracket.Left), context) {
		return use, 0, 0, false
	}
	key, ok := bracket.Member.(*ast.StringLiteral)
	if !ok {
		return use, 0, 0, false
	}
	use = member{context.String(), key.Value.String(), key.Idx, key.Idx1()}
	from, to = int(bracket.Left.Idx0())-1, int(bracket.RightBracket)
	between := string(src[from+len(use.object) : int(key.Idx)-1])
	return use, from, to, strings.Trim(between, " \t\r\n?.[") == ""
}

func withoutOptional(n ast.Expression) ast.Expression {
	if optional, ok := n.(*ast.Optional); ok {
		return optional.Expression
	}
	return n
}

func rename(n ast.Node, from, to unistring.String) {
	if id, ok := n.(*ast.Identifier); ok && id.Name == from {
		id.Name = to
	}
	syntax.Children(n, func(child ast.Node) { rename(child, from, to) })
}
