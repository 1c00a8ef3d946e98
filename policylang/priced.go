package policylang

import (
	"fmt"

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

// pricer makes the nodes of a heavy expression pay for what they do: loops for each
// round, functions for what they read.
type pricer struct {
	tree *ast.AST
	// functions are the implementations, by overload and by name.
	functions map[string]*functions.Overload
	// rounds are the prices of the steps of loops, calls those whose price depends on
	// values, and after what is paid for once the value of a node is known; all by the
	// id of the node.
	rounds map[int64]int64
	calls  map[int64]ast.CallExpr
	after  map[int64]func(ref.Val) int64
	// deep says that a call may compare values in values, eager that a key is computed,
	// which may be long and has no price: then each round looks at the clock.
	deep, eager bool
}

func newPricer(tree *ast.AST, known map[string]*functions.Overload) *pricer {
	p := &pricer{tree: tree, functions: known, rounds: map[int64]int64{}, calls: map[int64]ast.CallExpr{}, after: map[int64]func(ref.Val) int64{}}
	visit(tree.Expr(), p.plan)
	return p
}

// plan finds out what is paid for at a node.
func (p *pricer) plan(e ast.Expr) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		p.rounds[loop.LoopStep().ID()] = priceNode * (nodesIn(loop.LoopCondition()) + nodesIn(loop.LoopStep()))
		if p.kind(loop.IterRange()) != types.ListKind {
			p.after[loop.IterRange().ID()] = priceWalk
		}
	case ast.MapKind:
		p.after[e.ID()] = priceKeys
	case ast.CallKind:
		p.planCall(e.ID(), e.AsCall())
	}
}

func (p *pricer) planCall(id int64, call ast.CallExpr) {
	name, args := call.FunctionName(), operands(call)
	switch {
	case name == operators.Index || name == operators.OptIndex:
		p.eager = p.eager || !p.small(args[1])
	case p.grows(name, args):
		p.calls[id] = call
		p.deep = p.deep || p.comparesDeep(name, args)
	}
}

func nodesIn(e ast.Expr) int64 {
	n := int64(0)
	visit(e, func(ast.Expr) { n++ })
	return n
}

// operands returns the arguments of a call, the receiver of a method first.
func operands(call ast.CallExpr) []ast.Expr {
	if call.IsMemberFunction() {
		return append([]ast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}

func (p *pricer) kind(e ast.Expr) types.Kind { return p.tree.GetType(e.ID()).Kind() }

// small reports whether the values of e are of one size, or written out.
func (p *pricer) small(e ast.Expr) bool { return writtenOut(e) || constantSize(p.tree.GetType(e.ID())) }

// writtenOut reports whether e is a literal, or a list of them.
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

// grows reports whether what a call costs depends on what it is given.
func (p *pricer) grows(function string, args []ast.Expr) bool {
	switch function {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
		operators.OptSelect, "dyn", "type", "or", "orValue", "value", "hasValue",
		"optional.of", "optional.none", "optional.ofNonZeroValue":
		return false
	case operators.Equals, operators.NotEquals:
		return !p.small(args[0]) && !p.small(args[1])
	case operators.In, overloads.StartsWith, overloads.EndsWith:
		return !p.small(args[1])
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

// decorate is an [interpreter.InterpretableDecoratorV2].
func (p *pricer) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := node.ID()
	if written, ok := p.calls[id]; ok {
		if call, ok := node.(interpreter.InterpretableCall); ok {
			priced, err := p.price(call, operands(written))
			if err != nil {
				return nil, err
			}
			node = priced
		}
	}
	c := charge{round: p.rounds[id], after: p.after[id], eager: p.eager}
	if c.round == 0 && c.after == nil {
		return node, nil
	}
	if attribute, ok := node.(interpreter.InterpretableAttribute); ok {
		return &meteredAttribute{attribute, c}, nil
	}
	return &metered{node, c}, nil
}

// priceWalk is for a map that is walked through: its keys are sorted.
func priceWalk(v ref.Val) int64 {
	if m, ok := v.(traits.Mapper); ok {
		return times(sizeIn(m), priceKey)
	}
	return 0
}

// priceKeys is for the keys of a map that is written out.
func priceKeys(v ref.Val) int64 {
	sum := int64(0)
	if m, ok := v.(traits.Mapper); ok {
		for it := m.Iterator(); it.HasNext() == types.True; {
			sum += textBytes(it.Next())
		}
	}
	return sum
}

// price makes a call pay.
func (p *pricer) price(call interpreter.InterpretableCall, written []ast.Expr) (interpreter.InterpretableV2, error) {
	name := call.Function()
	priced := &pricedCall{id: call.ID(), function: name, args: call.Args()}
	switch name {
	case overloads.Matches:
		pattern, err := patternOf(written[1])
		if err != nil {
			return nil, err
		}
		return &pricedMatch{*priced, pattern}, nil
	case operators.Equals:
		priced.run = func(args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
		return priced, nil
	case operators.NotEquals:
		priced.run = func(args []ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
		return priced, nil
	}
	known := p.functions[call.OverloadID()]
	if known == nil {
		known = p.functions[name]
	}
	if known != nil && known.NonStrict {
		return nil, fmt.Errorf("the function %s has no price", name)
	}
	priced.run = runs(name, call.OverloadID(), known)
	return priced, nil
}

// runs returns what calls an implementation as CEL does.
func runs(name, overload string, known *functions.Overload) func(args []ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		fits := known != nil && (known.OperandTrait == 0 || args[0].Type().HasTrait(known.OperandTrait))
		switch {
		case fits && len(args) == 1 && known.Unary != nil:
			return known.Unary(args[0])
		case fits && len(args) == 2 && known.Binary != nil:
			return known.Binary(args[0], args[1])
		case fits && known.Function != nil:
			return known.Function(args...)
		case args[0].Type().HasTrait(traits.ReceiverType):
			return args[0].(traits.Receiver).Receive(name, overload, args[1:])
		}
		return types.NewErr("no such overload: %s", name)
	}
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

// pricedCall is a call that is paid for once its arguments are known, and before it
// is made.
type pricedCall struct {
	id       int64
	function string
	args     []interpreter.InterpretableV2
	run      func(args []ref.Val) ref.Val
}

// ID implements [interpreter.Interpretable].
func (c *pricedCall) ID() int64 { return c.id }

// Eval implements [interpreter.Interpretable].
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements [interpreter.InterpretableV2].
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args, doubt := c.evaluate(frame)
	if doubt != nil {
		return doubt
	}
	m := meterOf(frame)
	m.spend(priceOf(c.function, args, m.left))
	return types.LabelErrNode(c.id, c.run(args))
}

// evaluate returns the arguments, or the error or the unknown among them.
func (c *pricedCall) evaluate(frame *interpreter.ExecutionFrame) (args []ref.Val, doubt ref.Val) {
	args = make([]ref.Val, len(c.args))
	var unknown *types.Unknown
	for i, arg := range c.args {
		args[i] = arg.Exec(frame)
		if types.IsError(args[i]) {
			return nil, args[i]
		}
		unknown, _ = types.MaybeMergeUnknowns(args[i], unknown)
	}
	if unknown != nil {
		return nil, unknown
	}
	return args, nil
}
