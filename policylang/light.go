package policylang

import (
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// The most that a caller or a body can send, whatever its shape. Unlike the
// assumptions of [estimator.EstimateSize], these hold for each value by itself: all
// of the budget may be in any one of them.
const (
	// resultBytes, resultDepth and resultTokens bound a result that is judged.
	resultBytes  = 24 << 20
	resultDepth  = 72
	resultTokens = 250_000
	// factBytes bounds what a request says of its caller: it comes in headers.
	factBytes = 64 << 10
	factItems = factBytes / 2
)

// light reports whether the worst case of an expression, with the largest data that
// can reach it, is small enough to be evaluated without looking at the clock.
func (c *compiler) light(checked *cel.Ast, p *pricer) bool {
	if len(p.rounds)+len(p.calls) == 0 {
		return true
	}
	if p.deep {
		return false
	}
	cost, err := costOf(c.scope.cel, checked, worstCase{estimator{c.scope}})
	return err == nil && cost <= lightCost
}

// worstCase tells CEL the largest sizes of what an expression reads.
type worstCase struct{ estimator }

// EstimateSize implements [checker.CostEstimator].
func (w worstCase) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	switch node.Type().Kind() {
	case types.TypeKind, types.NullTypeKind, types.OpaqueKind:
		return &checker.SizeEstimate{Min: 1, Max: 1}
	}
	names := node.Path()
	if len(names) == 0 || !w.scope.isRoot(names[0]) {
		return nil
	}
	return &checker.SizeEstimate{Max: w.largest(names, node.Type().Kind())}
}

// largest returns the size, in bytes or elements, of what the names lead to.
func (w worstCase) largest(names []string, kind types.Kind) uint64 {
	bytes, items := w.budget(names[0])
	at := w.follow(names)
	if at == nil || names[0] == "result" || names[0] == "content" {
		at = anything() // what a body returns is not held to what it declares before it is judged
	}
	switch text := kind == types.StringKind || kind == types.BytesKind; {
	case text && len(at.enum) > 0:
		return longest(at.enum)
	case text && at.size > 0:
		return min(bytes, 4*at.size)
	case text:
		return bytes
	case at.size > 0:
		return min(items, at.size)
	}
	return items
}

// budget returns how many bytes and elements the variable can hold in all.
func (w worstCase) budget(root string) (bytes, items uint64) {
	switch root {
	case "args":
		return requestBytes, requestTokens
	case "result", "content":
		return resultBytes, resultTokens
	case "vars":
		return w.scope.env.varsBytes, w.scope.env.varsBytes
	}
	return factBytes, factItems
}

// EstimateCallCost implements [checker.CostEstimator]. The divisors are how many
// bytes a function gets through in a unit of CEL's, 50 ns.
func (w worstCase) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if known := optionalCost(function, target, args); known != nil {
		return known
	}
	if target != nil {
		args = append([]checker.AstNode{*target}, args...)
	}
	switch function {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return worth(min(w.bytes(args[0]), w.bytes(args[1]))/100, nil)
	case operators.In:
		return w.in(args[0], args[1])
	case overloads.StartsWith, overloads.EndsWith:
		return worth(w.bytes(args[1])/100, nil)
	case overloads.Contains:
		return worth(addSizes(w.bytes(args[0]), w.bytes(args[1]))/25, nil)
	case overloads.Size:
		if isContainer(args[0]) {
			return nil
		}
		return worth(w.bytes(args[0])/50, nil)
	case operators.Add, "@add":
		return w.added(args[0], args[1])
	case overloads.Matches:
		return w.matched(args[0], args[1])
	case "lowerAscii", "upperAscii", "trim", "substring", "charAt":
		size := w.bytes(args[0])
		return worth(size/5, &size)
	case "replace", "split", "join":
		return worth(math.MaxUint64, nil)
	}
	return w.other(args)
}

// worth is the cost of a call, and the size of its answer where that is known.
func worth(cost uint64, size *uint64) *checker.CallEstimate {
	e := &checker.CallEstimate{CostEstimate: checker.CostEstimate{Max: addSizes(cost, 1)}}
	if size != nil {
		e.ResultSize = &checker.SizeEstimate{Max: *size}
	}
	return e
}

// bytes returns how long a text or anything else at a node can be.
func (w worstCase) bytes(node checker.AstNode) uint64 {
	names := node.Path()
	if node.Type().Kind() == types.DynKind && len(names) > 0 && w.scope.isRoot(names[0]) {
		bytes, _ := w.budget(names[0])
		return bytes
	}
	if constantSize(node.Type()) {
		return 1
	}
	return sizeOf(node)
}

func isContainer(node checker.AstNode) bool {
	return node.Type().Kind() == types.ListKind || node.Type().Kind() == types.MapKind
}

func (w worstCase) in(value, in checker.AstNode) *checker.CallEstimate {
	switch {
	case in.Type().Kind() == types.MapKind:
		return worth(w.bytes(value)/100, nil)
	case in.Type().Kind() != types.ListKind:
		return worth(math.MaxUint64, nil)
	case writtenOut(in.Expr()):
		return worth(uint64(in.Expr().AsList().Size()), nil)
	}
	bytes := uint64(factBytes)
	if names := in.Path(); len(names) > 0 && w.scope.isRoot(names[0]) {
		bytes, _ = w.budget(names[0])
	} else {
		for name := range namesIn(in.Expr(), w.scope) {
			most, _ := w.budget(name)
			bytes = max(bytes, most)
		}
	}
	return worth(addSizes(sizeOf(in), bytes/100), nil)
}

// added counts a + b, which for lists is nothing but its answer.
func (w worstCase) added(a, b checker.AstNode) *checker.CallEstimate {
	if isContainer(a) {
		return nil
	}
	size := addSizes(w.bytes(a), w.bytes(b))
	return worth(size/25, &size)
}

func (w worstCase) matched(text, written checker.AstNode) *checker.CallEstimate {
	p, err := patternOf(written.Expr())
	if p == nil || err != nil {
		return worth(math.MaxUint64, nil)
	}
	return worth(multiplySizes(w.bytes(text), 1+uint64(p.size))/5, nil)
}

// other counts a function by all that it is given.
func (w worstCase) other(args []checker.AstNode) *checker.CallEstimate {
	sum := uint64(0)
	for _, arg := range args {
		switch {
		case constantSize(arg.Type()):
		case isContainer(arg):
			sum = addSizes(sum, multiplySizes(w.bytes(arg), 3))
		default:
			sum = addSizes(sum, w.bytes(arg)/5)
		}
	}
	if sum == 0 {
		return nil
	}
	return worth(sum, nil)
}

// isDeep reports whether the values of a type may hold any number of others, so that
// its size says little of what comparing it costs.
func isDeep(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind:
		return true
	case types.ListKind, types.MapKind:
		for _, part := range t.Parameters() {
			if !constantSize(part) && part.Kind() != types.StringKind && part.Kind() != types.BytesKind {
				return true
			}
		}
	}
	return false
}

// comparesDeep reports whether a call may compare values in values.
func (p *pricer) comparesDeep(function string, args []ast.Expr) bool {
	kind := func(e ast.Expr) types.Kind { return withoutOptional(p.tree.GetType(e.ID())).Kind() }
	deep := func(e ast.Expr) bool {
		return isDeep(withoutOptional(p.tree.GetType(e.ID()))) || kind(e) == types.StructKind
	}
	switch function {
	case operators.Equals, operators.NotEquals:
		return (deep(args[0]) || isContainerKind(kind(args[0]))) && (deep(args[1]) || isContainerKind(kind(args[1])))
	case operators.In:
		return !p.small(args[0]) && p.kind(args[0]) != types.StringKind && deep(args[1])
	case overloads.Size, overloads.StartsWith, overloads.EndsWith, overloads.Contains, overloads.Matches, operators.Add, "@add":
		return false
	}
	each := strings.HasPrefix(function, "sets.") // compares all texts of one list with all of another
	for _, arg := range args {
		if deep(arg) && isContainerKind(p.kind(arg)) || each && p.kind(arg) == types.ListKind && !constantSize(p.tree.GetType(arg.ID()).Parameters()[0]) {
			return true
		}
	}
	return false
}

func isContainerKind(k types.Kind) bool {
	return k == types.ListKind || k == types.MapKind || k == types.StructKind
}
