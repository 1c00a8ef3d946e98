package policylang

import (
	"maps"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
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
func (c *compiler) checkCost(at *positions, checked *cel.Ast) bool {
	cost, err := costOf(c.scope.cel, checked, estimator{c.scope})
	if err == nil && cost <= maxCost {
		return true
	}
	c.report(at, 0, len(at.text.Body()), problem{
		code: codeCost, dependsOnTool: readsTool(at.tree),
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
	s, ok := textIn(e)
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

// CEL's estimate knows no size of what is in an optional value. So an expression is
// estimated as the one that it would be without them: args.?x is args.x there, and
// optional.of(v) and o.value() are what they hold. A function that is gone so is paid
// for by optionalSteps.

// optionalSteps is a function of no expression: it stands around the condition of a
// loop and costs its second argument, once for each round.
const optionalSteps = "@optionals"

// costOf is CEL's estimate of an expression, by the sizes that the estimator knows and by
// what the libraries of env say of their functions.
func costOf(env *cel.Env, checked *cel.Ast, by checker.CostEstimator) (most uint64, err error) {
	o := newOptionals(checked.NativeRep())
	if o == nil {
		cost, err := env.EstimateCost(checked, by)
		return cost.Max, err
	}
	plain, issues := env.Parse("true") // CEL estimates what it has parsed itself, and nothing else
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	*plain.NativeRep() = *o.tree
	cost, err := env.EstimateCost(plain, by)
	return addSizes(cost.Max, o.steps), err
}

// optionals makes an expression one without optional values, for estimates alone.
type optionals struct {
	tree   *ast.AST
	types  map[int64]*types.Type
	refs   map[int64]*ast.ReferenceInfo
	make   ast.ExprFactory
	lastID int64
	// steps are what the functions that are gone cost outside of loops, at most.
	steps uint64
}

// newOptionals returns nil for an expression that has no optional values.
func newOptionals(checked *ast.AST) *optionals {
	steps := stepsIn(checked.Expr())
	if steps == 0 {
		return nil
	}
	o := &optionals{make: ast.NewExprFactory(), types: map[int64]*types.Type{}, refs: maps.Clone(checked.ReferenceMap()), steps: steps}
	for id, t := range checked.TypeMap() {
		o.types[id] = withoutOptional(t)
	}
	parsed := ast.Copy(checked)
	o.lastID = ast.MaxID(parsed)
	visit(parsed.Expr(), o.chargeRounds)
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(o.plain))
	o.tree = ast.NewCheckedAST(parsed, o.types, o.refs)
	return o
}

// withoutOptional is the type of what is in an optional value, wherever one stands in t.
func withoutOptional(t *types.Type) *types.Type {
	switch {
	case isOptional(t):
		return withoutOptional(t.Parameters()[0])
	case t.Kind() == types.ListKind:
		return types.NewListType(withoutOptional(t.Parameters()[0]))
	case t.Kind() == types.MapKind:
		return types.NewMapType(t.Parameters()[0], withoutOptional(t.Parameters()[1]))
	}
	return t
}

func isOptional(t *types.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type" && len(t.Parameters()) == 1
}

// stepsIn is what the functions of optional values in e cost, each evaluated once.
func stepsIn(e ast.Expr) uint64 {
	sum := uint64(0)
	visit(e, func(e ast.Expr) {
		switch call := e.AsCall(); call.FunctionName() {
		case "orValue":
			sum++
			if isEmpty(call.Args()[0]) {
				sum += common.MapCreateBaseCost
			}
		case operators.OptSelect, operators.OptIndex, "or", "value", "hasValue", "first", "last", "unwrapOpt",
			"optional.of", "optional.ofNonZeroValue", "optional.none", "optional.unwrap":
			sum++
		}
	})
	return sum
}

// isEmpty reports whether e is a list or a map that is written out and holds nothing.
func isEmpty(e ast.Expr) bool {
	return e.Kind() == ast.ListKind && e.AsList().Size() == 0 || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// chargeRounds lets a loop pay in each round for what is gone of it.
func (o *optionals) chargeRounds(e ast.Expr) {
	if e.Kind() != ast.ComprehensionKind {
		return
	}
	loop := e.AsComprehension()
	condition := loop.LoopCondition()
	steps := stepsIn(condition) + stepsIn(loop.LoopStep())
	if steps == 0 || condition.AsLiteral() == types.False {
		return
	}
	inner := o.node(o.types[condition.ID()])
	inner.SetKindCase(condition)
	o.refs[inner.ID()] = o.refs[condition.ID()]
	price := o.node(types.UintType)
	price.SetKindCase(o.make.NewLiteral(price.ID(), types.Uint(steps)))
	condition.SetKindCase(o.make.NewCall(condition.ID(), optionalSteps, inner, price))
	o.refs[condition.ID()] = ast.NewFunctionReference(optionalSteps)
}

func (o *optionals) node(t *types.Type) ast.Expr {
	o.lastID++
	o.types[o.lastID] = t
	return o.make.NewIdent(o.lastID, "")
}

// plain replaces, in place, a call of which nothing is left without optional values.
func (o *optionals) plain(e ast.Expr) {
	id, call := e.ID(), e.AsCall()
	switch call.FunctionName() {
	case operators.OptSelect:
		name, _ := textIn(call.Args()[1])
		e.SetKindCase(o.make.NewSelect(id, call.Args()[0], name))
		delete(o.refs, id)
	case operators.OptIndex, operators.Index:
		o.index(e, call.Args()[0], call.Args()[1])
	case "first", "last":
		zero := o.node(types.IntType)
		zero.SetKindCase(o.make.NewLiteral(zero.ID(), types.IntZero))
		o.index(e, call.Target(), zero)
	case "value", "unwrapOpt":
		o.replace(e, call.Target())
	case "optional.of", "optional.ofNonZeroValue", "optional.unwrap":
		o.replace(e, call.Args()[0])
	case "optional.none":
		o.empty(e)
	case "orValue":
		if isEmpty(call.Args()[0]) {
			o.replace(e, call.Target())
		}
	}
}

// become puts of in the place of e.
func (o *optionals) replace(e, of ast.Expr) {
	if ref := o.refs[of.ID()]; ref != nil {
		o.refs[e.ID()] = ref
	} else {
		delete(o.refs, e.ID())
	}
	o.types[e.ID()] = o.types[of.ID()]
	e.SetKindCase(of)
}

// index makes e an element of a list or a map.
func (o *optionals) index(e, of, key ast.Expr) {
	ref := ast.NewFunctionReference()
	kind := o.types[of.ID()].Kind()
	if kind != types.MapKind {
		ref.AddOverload(overloads.IndexList)
	}
	if kind != types.ListKind {
		ref.AddOverload(overloads.IndexMap)
	}
	e.SetKindCase(o.make.NewCall(e.ID(), operators.Index, of, key))
	o.refs[e.ID()] = ref
}

// empty makes e the smallest value of its type, as far as its size counts.
func (o *optionals) empty(e ast.Expr) {
	delete(o.refs, e.ID())
	switch o.types[e.ID()].Kind() {
	case types.ListKind:
		e.SetKindCase(o.make.NewList(e.ID(), nil, nil))
	case types.MapKind:
		e.SetKindCase(o.make.NewMap(e.ID(), nil))
	default:
		e.SetKindCase(o.make.NewLiteral(e.ID(), types.NullValue))
	}
}

// optionalCost estimates what is left of optional values; nil of any other function.
func optionalCost(function string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch function {
	case optionalSteps:
		steps, _ := args[1].Expr().AsLiteral().(types.Uint)
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Max: uint64(steps) + 1}}
	case "hasValue":
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Max: 1}}
	case "or", "orValue":
		return &checker.CallEstimate{
			CostEstimate: checker.CostEstimate{Max: 1},
			ResultSize:   &checker.SizeEstimate{Max: max(sizeOf(*target), sizeOf(args[0]))},
		}
	}
	return nil
}
