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

// maxCost is the highest accepted estimate, in CEL's units of about 50 ns.
const maxCost = 10_000_000

// Assumed sizes where no schema sets a bound. They fit ordinary calls; the [meter] bounds
// larger data.
const (
	requestBytes  = 4 << 20
	requestTokens = 50_000
	// maxAnswer bounds the text that a function returns. maxPattern bounds a computed regular
	// expression: nothing interrupts its compilation.
	maxAnswer  = 4 * requestBytes
	maxPattern = 1000
	// elementBytes and elementItems bound the elements of a list, because all elements share
	// the size of the request.
	elementBytes = 128
	elementItems = 16
	// maxMemberships bounds scopes, groups, claims and labels; maxFactBytes bounds the strings
	// in them.
	maxMemberships = 100
	maxFactBytes   = 1 << 10
)

// checkCost reports whether the estimated cost for ordinary data is acceptable.
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

// boundAdvice says how to bound the data that an expression reads.
func boundAdvice(tree ast.Expr) string {
	const fewer = "nest fewer loops"
	switch {
	case reads(tree, "args"):
		return "set max_items or max_length on the arguments that it reads, or " + fewer
	case readsTool(tree):
		return "set max_items or max_length on the outputs that it reads, or " + fewer
	}
	return fewer
}

// estimator reports the sizes of variables and members to CEL.
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

// size returns the size of the value at the path names, which starts with a variable.
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

// follow returns the shape of the value at the path names, or nil.
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

// assumedSize is the size of a value without a bound in a schema.
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

// EstimateCallCost implements [checker.CostEstimator] for functions that CEL estimates wrongly
// or without the size of the result.
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

// replaced estimates s.replace(old, new). An empty old matches between any two characters.
func (e estimator) replaced(size uint64, args []checker.AstNode) *checker.CallEstimate {
	places := addSizes(size, 1)
	if old, ok := literalLength(args[0].Expr()); ok && old > 0 {
		places = size / old
	}
	return linear(addSizes(size, multiplySizes(places, sizeOf(args[1]))), 1)
}

// joined estimates list.join(separator).
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

// linear estimates a call that costs base plus a tenth of a unit for each character of its
// result. A result larger than any request exceeds maxCost.
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

// sizeOf returns the maximum size of a node, as far as it is known.
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

// addSizes and multiplySizes saturate at the maximum.
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

// CEL's estimate ignores the size of an optional value. So the estimate is made for an
// equivalent expression without optional values: args.?x becomes args.x, and optional.of(v) and
// o.value() become the value they hold. optionalSteps adds the cost of the removed functions.

// optionalSteps is a function that no author can write. It wraps the condition of a loop and
// costs its second argument in each round.
const optionalSteps = "@optionals"

// costOf is CEL's estimate of an expression, with the sizes of the estimator and the costs
// declared by the libraries of env.
func costOf(env *cel.Env, checked *cel.Ast, by checker.CostEstimator) (most uint64, err error) {
	o := newOptionals(checked.NativeRep())
	if o == nil {
		cost, err := env.EstimateCost(checked, by)
		return cost.Max, err
	}
	plain, issues := env.Parse("true") // CEL estimates only an AST that it has parsed
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	*plain.NativeRep() = *o.tree
	cost, err := env.EstimateCost(plain, by)
	return addSizes(cost.Max, o.steps), err
}

// optionals removes optional values from an expression, only for estimates.
type optionals struct {
	tree   *ast.AST
	types  map[int64]*types.Type
	refs   map[int64]*ast.ReferenceInfo
	make   ast.ExprFactory
	lastID int64
	// steps is the maximum cost of the removed functions outside of loops.
	steps uint64
}

// newOptionals returns nil for an expression without optional values.
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

// withoutOptional replaces each optional type in t by its inner type.
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

// stepsIn is the cost of the optional functions in e, each evaluated once.
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

// isEmpty reports whether e is an empty list or map literal.
func isEmpty(e ast.Expr) bool {
	return e.Kind() == ast.ListKind && e.AsList().Size() == 0 || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// chargeRounds adds the cost of removed functions to each round of a loop.
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

// plain replaces, in place, a call that only handles optional values.
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

// replace replaces e by of, in place.
func (o *optionals) replace(e, of ast.Expr) {
	if ref := o.refs[of.ID()]; ref != nil {
		o.refs[e.ID()] = ref
	} else {
		delete(o.refs, e.ID())
	}
	o.types[e.ID()] = o.types[of.ID()]
	e.SetKindCase(of)
}

// index turns e into an element access to a list or map.
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

// empty turns e into an empty value of its type.
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

// optionalCost estimates the remaining optional functions, and returns nil for other functions.
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
