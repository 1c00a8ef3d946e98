package policylang

import (
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// promoter makes integers work next to numbers. CEL separates the two types even if both are
// written 5, but authors write args.amount == 5.
type promoter struct {
	tree   *ast.AST
	make   ast.ExprFactory
	nodes  map[int64]ast.Expr
	nextID int64
}

func newPromoter(tree *ast.AST) *promoter {
	return &promoter{tree: tree, make: ast.NewExprFactory()}
}

// index collects the nodes on first use.
func (p *promoter) index() {
	if p.nodes != nil {
		return
	}
	p.nodes = map[int64]ast.Expr{}
	p.nextID = ast.MaxID(p.tree)
	visit(p.tree.Expr(), func(e ast.Expr) { p.nodes[e.ID()] = e })
}

// promoteLiterals promotes literals next to a number of the schema, before the checker rejects
// them.
func (p *promoter) promoteLiterals(s *scope) {
	visit(p.tree.Expr(), func(e ast.Expr) {
		if len(e.AsCall().Args()) != 2 {
			return
		}
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
			a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
			p.promoteLiteral(s, a, b)
			p.promoteLiteral(s, b, a)
		}
	})
}

func (p *promoter) promoteLiteral(s *scope, member, literal ast.Expr) {
	known := s.shapeOf(member)
	if known == nil || known.cel.Kind() != types.DoubleKind {
		return
	}
	if i, ok := literal.AsLiteral().(types.Int); ok && types.Int(types.Double(i)) == i {
		literal.SetKindCase(p.make.NewLiteral(literal.ID(), types.Double(i)))
	}
}

// promote fixes, in place, the reported integers next to numbers. It reports whether it changed
// anything.
func (p *promoter) promote(errs []*common.Error) bool {
	p.index()
	repaired := false
	for _, err := range errs {
		m, ok := readMismatch(err.Message)
		e := p.nodes[err.ExprID]
		if ok && e != nil && e.Kind() == ast.CallKind && p.repair(e, m) {
			repaired = true
		}
	}
	return repaired
}

func (p *promoter) repair(e ast.Expr, m mismatch) bool {
	args := e.AsCall().Args()
	if m.method && m.function == "orValue" && len(m.args) == 2 && len(args) == 1 {
		inner, ok := strings.CutPrefix(m.args[0], "optional_type(")
		return ok && notNull(strings.TrimSuffix(inner, ")")) == "double" && m.args[1] == "int" && p.toNumber(args[0])
	}
	if len(args) != len(m.args) || len(args) < 2 {
		return false
	}
	switch m.function {
	case operators.Equals, operators.NotEquals:
		// CEL compares any two numbers correctly; only its checker rejects them.
		return alikeButForNumbers(m.args[0], m.args[1]) && p.wrap(args[0], "dyn")
	case operators.In:
		return keyOf(m.args[1]) != "" && alikeButForNumbers(m.args[0], keyOf(m.args[1])) && p.wrap(args[0], "dyn")
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		return p.toCommonType(args[0], args[1], m.args[0], m.args[1])
	case operators.Conditional:
		return p.toCommonType(args[1], args[2], m.args[1], m.args[2])
	}
	return false
}

// toCommonType converts the integer of an integer and a number to a number.
func (p *promoter) toCommonType(a, b ast.Expr, typeA, typeB string) bool {
	typeA, typeB = notNull(typeA), notNull(typeB)
	switch {
	case typeA == "int" && typeB == "double":
		return p.toNumber(a)
	case typeA == "double" && typeB == "int":
		return p.toNumber(b)
	}
	return false
}

func (p *promoter) toNumber(e ast.Expr) bool {
	if i, ok := e.AsLiteral().(types.Int); ok {
		e.SetKindCase(p.make.NewLiteral(e.ID(), types.Double(i)))
		return true
	}
	return p.wrap(e, "double")
}

// wrap wraps e in a call of function, in place.
func (p *promoter) wrap(e ast.Expr, function string) bool {
	p.nextID++
	inner := p.make.NewIdent(p.nextID, "")
	inner.SetKindCase(e)
	if r, ok := p.tree.SourceInfo().GetOffsetRange(e.ID()); ok {
		p.tree.SourceInfo().SetOffsetRange(inner.ID(), r)
	}
	e.SetKindCase(p.make.NewCall(e.ID(), function, inner))
	p.nodes[inner.ID()] = inner
	return true
}

// useDynamicOperators replaces arithmetic on values with types known only in the call by
// functions that accept an integer next to a number. It reports whether it changed the tree,
// which must then be checked again.
func (p *promoter) useDynamicOperators(checked *ast.AST) bool {
	changed := false
	visit(p.tree.Expr(), func(e ast.Expr) {
		name, args := dynamicOperators[e.AsCall().FunctionName()], e.AsCall().Args()
		if name == "" || len(args) != 2 || !mayMixNumbers(checked.GetType(args[0].ID()), checked.GetType(args[1].ID())) {
			return
		}
		e.SetKindCase(p.make.NewCall(e.ID(), name, args...))
		changed = true
	})
	return changed
}

// mayMixNumbers reports whether one operand has an unknown type and the other may be a number.
func mayMixNumbers(a, b *types.Type) bool {
	if a.Kind() != types.DynKind {
		a, b = b, a
	}
	if a.Kind() != types.DynKind {
		return false
	}
	switch b.Kind() {
	case types.DynKind, types.IntKind, types.DoubleKind:
		return true
	}
	return false
}

// mismatch is CEL's error for a function that does not accept its arguments.
type mismatch struct {
	function string
	// args are the types in CEL's notation, with the receiver of a method first.
	args   []string
	method bool
}

// readMismatch parses an error such as
//
//	found no matching overload for '_==_' applied to '(double, int)'
func readMismatch(message string) (mismatch, bool) {
	rest, ok := strings.CutPrefix(message, "found no matching overload for '")
	if !ok {
		return mismatch{}, false
	}
	function, signature, ok := strings.Cut(rest, "' applied to '")
	if !ok {
		return mismatch{}, false
	}
	signature = strings.TrimSuffix(signature, "'")
	m := mismatch{function: function}
	if receiver, list, ok := strings.Cut(signature, ".("); ok {
		m.method = true
		m.args = append(m.args, receiver)
		signature = "(" + list
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(signature, "("), ")")
	m.args = append(m.args, splitTypes(inner)...)
	return m, true
}

// splitTypes splits a list of types at commas outside of brackets.
func splitTypes(list string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(list[start:]); last != "" {
		out = append(out, last)
	}
	return out
}

// alikeButForNumbers reports whether two types differ only in integers and numbers.
func alikeButForNumbers(a, b string) bool {
	return a != b && allNumbers(a) == allNumbers(b)
}

func allNumbers(t string) string {
	switch {
	case t == "int":
		return "double"
	case strings.HasSuffix(t, ")"):
		name, inner, _ := strings.Cut(strings.TrimSuffix(t, ")"), "(")
		if name == "wrapper" {
			return allNumbers(inner)
		}
		parts := splitTypes(inner)
		for i, part := range parts {
			parts[i] = allNumbers(part)
		}
		return name + "(" + strings.Join(parts, ", ") + ")"
	}
	return t
}

// notNull returns the inner type of a nullable type.
func notNull(t string) string {
	if inner, ok := strings.CutPrefix(t, "wrapper("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return t
}

// keyOf returns the type that `in` looks for in a list or map of type t.
func keyOf(t string) string {
	name, inner, ok := strings.Cut(strings.TrimSuffix(t, ")"), "(")
	if parts := splitTypes(inner); ok && (name == "list" || name == "map") && len(parts) > 0 {
		return parts[0]
	}
	return ""
}

// pruner removes parts of an expression that the arguments of a tool make constant. If the tool
// cannot have an argument x, has(args.x) is false and the part that it guards is removed.
type pruner struct {
	scope *scope
	info  *ast.SourceInfo
	make  ast.ExprFactory
	// known are the nodes that replaced a known value. The true and false of the author are
	// kept, so that errors next to them are still reported.
	known map[int64]bool
}

// prune rewrites tree in place.
func prune(tree *ast.AST, s *scope) {
	p := pruner{scope: s, info: tree.SourceInfo(), make: ast.NewExprFactory(), known: map[int64]bool{}}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(p.reduce))
}

func (p *pruner) reduce(e ast.Expr) {
	if p.isAlwaysAbsent(e) {
		p.replaceWithBool(e, false)
	}
	p.reduceCall(e)
}

// isAlwaysAbsent reports whether e is has() of a member that the schema of the arguments or the
// result excludes.
func (p *pruner) isAlwaysAbsent(e ast.Expr) bool {
	if !e.AsSelect().IsTestOnly() {
		return false
	}
	operand := e.AsSelect().Operand()
	names := path(operand)
	if names == nil || !isTools(names[0]) {
		return false
	}
	owner := p.scope.shapeOf(operand)
	return owner != nil && owner.fields != nil && !owner.open && owner.fields[e.AsSelect().FieldName()] == nil
}

func (p *pruner) reduceCall(e ast.Expr) {
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalNot:
		if value, ok := p.knownValue(args[0]); ok {
			p.replaceWithBool(e, !value)
		}
	case operators.LogicalAnd:
		p.reduceJunction(e, args, false)
	case operators.LogicalOr:
		p.reduceJunction(e, args, true)
	case operators.Conditional:
		if value, ok := p.knownValue(args[0]); ok && value {
			p.replace(e, args[1])
		} else if ok {
			p.replace(e, args[2])
		}
	}
}

// reduceJunction simplifies && and ||. One side can decide the result even if the other side
// fails.
func (p *pruner) reduceJunction(e ast.Expr, sides []ast.Expr, decides bool) {
	left, leftKnown := p.knownValue(sides[0])
	right, rightKnown := p.knownValue(sides[1])
	switch {
	case leftKnown && left == decides, rightKnown && right == decides:
		p.replaceWithBool(e, decides)
	case leftKnown && rightKnown:
		p.replaceWithBool(e, !decides)
	}
}

func (p *pruner) knownValue(e ast.Expr) (value, ok bool) {
	if !p.known[e.ID()] || e.Kind() != ast.LiteralKind {
		return false, false
	}
	return e.AsLiteral() == types.True, true
}

func (p *pruner) replaceWithBool(e ast.Expr, value bool) {
	e.SetKindCase(p.make.NewLiteral(e.ID(), types.Bool(value)))
	p.known[e.ID()] = true
}

// replace replaces e by its part by.
func (p *pruner) replace(e, by ast.Expr) {
	if r, ok := p.info.GetOffsetRange(by.ID()); ok {
		p.info.SetOffsetRange(e.ID(), r)
	}
	settled := p.known[by.ID()]
	e.SetKindCase(by)
	p.known[e.ID()] = settled
}
