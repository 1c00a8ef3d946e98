package policylang

import (
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// maxCost is the highest estimate that is accepted, in CEL's units: about 50 ns on
// the machine that its authors measured.
const maxCost = 10_000_000

// Assumptions on sizes where no schema bounds them: those of ordinary calls. Data
// that is larger meets the [meter].
const (
	requestBytes  = 4 << 20
	requestTokens = 50_000
	// maxAnswer bounds the text that a function makes, maxPattern a regular
	// expression that is not written out: compiling it is not interrupted.
	maxAnswer  = 4 * requestBytes
	maxPattern = 1000
	// elementBytes and elementItems bound what is inside of a list: all its
	// elements share the request's budget.
	elementBytes = 128
	elementItems = 16
	// maxMemberships bounds scopes, groups, claims and labels, and
	// maxFactBytes the strings among them.
	maxMemberships = 100
	maxFactBytes   = 1 << 10
)

// checkCost reports whether the cost of the expression with ordinary data has an
// acceptable bound.
func (c *compiler) checkCost(at *places, checked *cel.Ast) bool {
	cost, err := costOf(c.scope.cel, checked, estimator{c.scope})
	if err == nil && cost <= maxCost {
		return true
	}
	c.report(at, 0, len(at.text.Body()), problem{
		code: codeCost, ofTool: readsTool(at.tree),
		summary: "this can take too long to evaluate",
		detail:  boundAdvice(at.tree),
	})
	return false
}

// boundAdvice says how to bound what an expression walks through or searches.
func boundAdvice(tree ast.Expr) string {
	const fewer = "loop over fewer lists at once"
	switch {
	case reads(tree, "args"):
		return "give the arguments that it walks through or searches max_items or max_length, or " + fewer
	case readsTool(tree):
		return "give the outputs that it walks through or searches max_items or max_length, or " + fewer
	}
	return fewer
}

// estimator tells CEL the sizes of what an expression reads.
type estimator struct{ scope *scope }

// EstimateSize implements [checker.CostEstimator].
func (e estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	switch node.Type().Kind() {
	case types.TypeKind, types.NullTypeKind, types.OpaqueKind:
		return &checker.SizeEstimate{Min: 1, Max: 1}
	}
	names := node.Path()
	if len(names) == 0 || !e.scope.isRoot(names[0]) {
		return nil
	}
	return &checker.SizeEstimate{Max: e.size(names, node.Type())}
}

// size follows the names from a variable inwards.
func (e estimator) size(names []string, t *types.Type) uint64 {
	if last := names[len(names)-1]; last == "@keys" || last == "@indices" {
		return elementBytes
	}
	at := e.follow(names)
	if at != nil && at.size > 0 {
		return at.size
	}
	if at != nil && len(at.enum) > 0 {
		return longest(at.enum)
	}
	inList := slices.Contains(names, "@items") || slices.Contains(names, "@values")
	return assumedSize(isTools(names[0]), inList, t)
}

// follow returns the shape of what the names lead to, or nil.
func (e estimator) follow(names []string) *shape {
	at := e.scope.roots[names[0]]
	for _, name := range names[1:] {
		switch name {
		case "@items", "@values":
			at = items(at)
		case "@keys", "@indices":
			return nil
		default:
			at = member(at, name)
		}
	}
	return at
}

func items(s *shape) *shape {
	if s == nil {
		return nil
	}
	return s.items
}

func member(s *shape, name string) *shape {
	if s == nil {
		return nil
	}
	if f := s.fields[name]; f != nil {
		return f
	}
	return s.items
}

func longest(list []string) uint64 {
	n := 0
	for _, s := range list {
		n = max(n, len(s))
	}
	return uint64(n)
}

// assumedSize is the size of a value that no schema bounds.
func assumedSize(fromCaller, inList bool, t *types.Type) uint64 {
	text := t.Kind() == types.StringKind || t.Kind() == types.BytesKind
	switch {
	case text && !fromCaller:
		return maxFactBytes
	case !fromCaller:
		return maxMemberships
	case text && inList:
		return elementBytes
	case text:
		return requestBytes
	case inList:
		return elementItems
	}
	return requestTokens
}

// EstimateCallCost implements [checker.CostEstimator] for the functions that
// CEL's own estimate gets wrong, or has no size of the answer for.
func (e estimator) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch function {
	case overloads.Matches:
		if pattern := args[len(args)-1]; pattern.Expr().Kind() != ast.LiteralKind && sizeOf(pattern) > maxPattern {
			return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Max: math.MaxUint64}}
		}
	case "lowerAscii", "upperAscii", "trim", "substring", "charAt", "split":
		return linear(sizeOf(*target), 1)
	case "replace":
		return e.replaced(sizeOf(*target), args)
	case "join":
		return e.joined(*target, args)
	case "@add":
		return linear(addSizes(sizeOf(args[0]), sizeOf(args[1])), 0)
	case "string":
		if len(args) == 1 && shortAsText(args[0].Type()) {
			return linear(64, 1)
		}
	}
	return optionalCost(function, target, args)
}

// replaced counts s.replace(old, new): an empty old fits between any two
// characters.
func (e estimator) replaced(size uint64, args []checker.AstNode) *checker.CallEstimate {
	places := addSizes(size, 1)
	if old, ok := literalLength(args[0].Expr()); ok && old > 0 {
		places = size / old
	}
	return linear(addSizes(size, multiplySizes(places, sizeOf(args[1]))), 1)
}

// joined counts list.join(separator).
func (e estimator) joined(list checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	each := uint64(elementBytes)
	if s := e.scope.shapeOf(list.Expr()); s != nil && s.items != nil && s.items.size > 0 {
		each = s.items.size
	}
	if len(args) > 0 {
		each = addSizes(each, sizeOf(args[0]))
	}
	return linear(multiplySizes(sizeOf(list), each), 1)
}

func shortAsText(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.TimestampKind, types.DurationKind:
		return true
	}
	return false
}

// linear is a call that costs a tenth of a unit for each character of its
// answer, and base at least. An answer that could be larger than any request
// costs more than is accepted.
func linear(size, base uint64) *checker.CallEstimate {
	cost := addSizes(base, size/10)
	if size > maxAnswer {
		cost = math.MaxUint64
	}
	return &checker.CallEstimate{
		CostEstimate: checker.CostEstimate{Min: base, Max: cost},
		ResultSize:   &checker.SizeEstimate{Max: size},
	}
}

// sizeOf returns the largest size that is known of a node.
func sizeOf(node checker.AstNode) uint64 {
	if s := node.ComputedSize(); s != nil {
		return s.Max
	}
	return math.MaxUint64
}

func literalLength(e ast.Expr) (uint64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	s, ok := e.AsLiteral().(types.String)
	return uint64(len(s)), ok
}

// addSizes and multiplySizes stop at the largest size there is.
func addSizes(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func multiplySizes(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}
