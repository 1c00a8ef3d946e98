package policylang

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// pricer adds charges to the nodes of an expression: to loops for each round, to functions for
// the data that they read.
type pricer struct {
	tree *ast.AST
	// functions are the implementations, by overload and by name.
	functions map[string]*functions.Overload
	// rounds are the prices of loop steps. calls are the calls with a price that depends on
	// values. after are the prices of operations on the value of a node. All are keyed by node
	// id.
	rounds map[int64]int64
	calls  map[int64]ast.CallExpr
	after  map[int64]func(ref.Val) int64
	// looped are the nodes that loops evaluate repeatedly.
	looped map[int64]bool
	// computedKey means that a key is computed. Its length has no bound and no price, so each round
	// checks the clock.
	computedKey bool
	// short means that the rounds of the last loop are few and short.
	short bool
}

// callerItems bounds the number of texts that a request holds about its caller.
const callerItems = 32 << 10

func newPricer(tree *ast.AST, known map[string]*functions.Overload) *pricer {
	p := &pricer{
		tree: tree, functions: known, rounds: map[int64]int64{}, calls: map[int64]ast.CallExpr{},
		after: map[int64]func(ref.Val) int64{}, looped: map[int64]bool{},
	}
	visit(tree.Expr(), p.findCharges)
	return p
}

// charges reports whether anything in the expression has a price. A single short loop, such as
// one over principal.scopes, has none, because nearly every policy has one.
func (p *pricer) charges() bool {
	if p.short && !p.computedKey && len(p.rounds) == 1 {
		return len(p.calls)+len(p.after) > 0
	}
	return len(p.rounds)+len(p.calls)+len(p.after) > 0
}

// findCharges finds the charges of a node.
func (p *pricer) findCharges(e ast.Expr) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		round := priceNode * (p.repeat(loop.LoopCondition()) + p.repeat(loop.LoopStep()))
		p.rounds[loop.LoopStep().ID()] = round
		p.short = p.brief(loop.IterRange()) && round*callerItems <= maxUnits/4
		if p.kind(loop.IterRange()) != types.ListKind {
			p.after[loop.IterRange().ID()] = priceWalk
		}
	case ast.MapKind:
		if slices.ContainsFunc(e.AsMap().Entries(), func(entry ast.EntryExpr) bool { return !p.small(entry.AsMapEntry().Key()) }) {
			p.after[e.ID()] = priceKeys
		}
	case ast.CallKind:
		p.findCallCharge(e.ID(), e.AsCall())
	}
}

func (p *pricer) findCallCharge(id int64, call ast.CallExpr) {
	name, args := call.FunctionName(), operands(call)
	switch {
	case name == operators.Index || name == operators.OptIndex:
		p.computedKey = p.computedKey || !p.small(args[1])
	case p.grows(name, args):
		p.calls[id] = call
	}
}

// repeat marks the nodes of e as evaluated repeatedly and counts them.
func (p *pricer) repeat(e ast.Expr) int64 {
	n := int64(0)
	visit(e, func(e ast.Expr) {
		n++
		p.looped[e.ID()] = true
	})
	return n
}

// operands returns the arguments of a call, after the receiver of a method.
func operands(call ast.CallExpr) []ast.Expr {
	if call.IsMemberFunction() {
		return append([]ast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}

func (p *pricer) kind(e ast.Expr) types.Kind { return p.tree.GetType(e.ID()).Kind() }

// small reports whether the values of e have a constant size or are literals.
func (p *pricer) small(e ast.Expr) bool { return writtenOut(e) || constantSize(p.tree.GetType(e.ID())) }

// brief reports whether comparing with e, or searching in it, is too cheap to charge. That
// holds if e is small. Outside of loops it also holds for a text, a list of texts, and maps
// about the caller, which come in headers of at most 64 KiB.
func (p *pricer) brief(e ast.Expr) bool {
	if p.small(e) {
		return true
	}
	names := path(e)
	if len(names) == 0 || !isFactSet(names[0]) || p.looped[e.ID()] {
		return false
	}
	return p.kind(e) != types.DynKind
}

// holdsMany reports whether a value of e may be a list or map that is not a literal.
func (p *pricer) holdsMany(e ast.Expr) bool {
	switch p.kind(e) {
	case types.ListKind, types.MapKind, types.StructKind, types.DynKind:
		return !writtenOut(e)
	}
	return false
}

// writtenOut reports whether e is a literal, or a list of literals.
func writtenOut(e ast.Expr) bool {
	if e.Kind() == ast.ListKind {
		for _, item := range e.AsList().Elements() {
			if item.Kind() != ast.LiteralKind {
				return false
			}
		}
		return true
	}
	return e.Kind() == ast.LiteralKind
}

// constantSize reports whether all values of a type take the same time to compare.
func constantSize(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.TimestampKind, types.DurationKind, types.NullTypeKind, types.TypeKind:
		return true
	case types.OpaqueKind:
		return len(t.Parameters()) == 0
	}
	return false
}

// grows reports whether the cost of a call depends on its arguments.
func (p *pricer) grows(function string, args []ast.Expr) bool {
	switch function {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
		operators.OptSelect, "dyn", "type", "or", "orValue", "value", "hasValue",
		"optional.of", "optional.none", "optional.ofNonZeroValue":
		return false
	case operators.Equals, operators.NotEquals:
		return !p.brief(args[0]) && !p.brief(args[1]) || p.holdsMany(args[0]) && p.holdsMany(args[1])
	case operators.In, overloads.StartsWith, overloads.EndsWith:
		return !p.brief(args[1])
	case operators.Add, overloads.Size:
		if kind := p.kind(args[0]); kind == types.ListKind || kind == types.MapKind {
			return false
		}
	}
	for _, arg := range args {
		if !p.small(arg) {
			return true
		}
	}
	return false
}

// decorate is an [interpreter.InterpretableDecoratorV2] that adds the charges.
func (p *pricer) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := node.ID()
	if written, ok := p.calls[id]; ok {
		if call, ok := node.(interpreter.InterpretableCall); ok {
			priced, err := p.meterCall(call, operands(written))
			if err != nil {
				return nil, err
			}
			node = priced
		}
	}
	c := charge{round: p.rounds[id], after: p.after[id], checkEachRound: p.computedKey}
	if c.round == 0 && c.after == nil {
		return node, nil
	}
	if attribute, ok := node.(interpreter.InterpretableAttribute); ok {
		return &meteredAttribute{attribute, c}, nil
	}
	return &metered{node, c}, nil
}

// priceWalk is the price of iterating over a map, which sorts its keys.
func priceWalk(v ref.Val) int64 {
	if m, ok := v.(traits.Mapper); ok {
		return times(sizeIn(m), priceKey)
	}
	return 0
}

// priceKeys is the price of the keys of a map literal.
func priceKeys(v ref.Val) int64 {
	sum := int64(0)
	if m, ok := v.(traits.Mapper); ok {
		for it := m.Iterator(); it.HasNext() == types.True; {
			sum += textBytes(it.Next())
		}
	}
	return sum
}

// meterCall replaces a call by a metered call.
func (p *pricer) meterCall(call interpreter.InterpretableCall, written []ast.Expr) (interpreter.InterpretableV2, error) {
	priced := &meteredCall{id: call.ID(), function: call.Function(), overload: call.OverloadID(), args: call.Args()}
	switch priced.function {
	case overloads.Matches:
		pattern, err := patternOf(written[1])
		if err != nil {
			return nil, err
		}
		return &meteredMatch{*priced, pattern}, nil
	case operators.Equals:
		priced.impl = &functions.Overload{Binary: types.Equal}
		return priced, nil
	case operators.NotEquals:
		priced.impl = &functions.Overload{Binary: func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }}
		return priced, nil
	}
	if priced.impl = p.functions[priced.overload]; priced.impl == nil {
		priced.impl = p.functions[priced.function]
	}
	if priced.impl != nil && priced.impl.NonStrict {
		return nil, fmt.Errorf("the function %s has no price", priced.function)
	}
	return priced, nil
}

// implementations returns the functions of an environment, by overload and by name.
func implementations(env *cel.Env) (map[string]*functions.Overload, error) {
	known := map[string]*functions.Overload{}
	for _, declared := range env.Functions() {
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			known[b.Operator] = b
		}
	}
	return known, nil
}
