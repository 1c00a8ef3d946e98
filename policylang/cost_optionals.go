package policylang

import (
	"maps"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

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
		if e.Kind() != ast.CallKind {
			return
		}
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
	if steps == 0 || condition.Kind() == ast.LiteralKind && condition.AsLiteral() == types.False {
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
	if e.Kind() != ast.CallKind {
		return
	}
	id, call := e.ID(), e.AsCall()
	switch call.FunctionName() {
	case operators.OptSelect:
		name, _ := call.Args()[1].AsLiteral().(types.String)
		e.SetKindCase(o.make.NewSelect(id, call.Args()[0], string(name)))
		delete(o.refs, id)
	case operators.OptIndex, operators.Index:
		o.index(e, call.Args()[0], call.Args()[1])
	case "first", "last":
		zero := o.node(types.IntType)
		zero.SetKindCase(o.make.NewLiteral(zero.ID(), types.IntZero))
		o.index(e, call.Target(), zero)
	case "value", "unwrapOpt":
		o.become(e, call.Target())
	case "optional.of", "optional.ofNonZeroValue", "optional.unwrap":
		o.become(e, call.Args()[0])
	case "optional.none":
		o.empty(e)
	case "orValue":
		if isEmpty(call.Args()[0]) {
			o.become(e, call.Target())
		}
	}
}

// become puts of in the place of e.
func (o *optionals) become(e, of ast.Expr) {
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
