package policylang

import (
	"context"
	"fmt"
	"slices"
	"time"

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

const (
	// interruptAfter is the longest that a decision takes.
	interruptAfter = 100 * time.Millisecond
	// allowance is what a decision may spend, in units of about a nanosecond.
	allowance = int64(interruptAfter)
	// lookEvery is how many units pass between two looks at the clock.
	lookEvery = allowance / 1000
)

// meter bounds the processor time of a decision. CEL's own cost limit cannot: it
// counts a call after the call has returned, and allocates for each node (decision
// 61). The meter charges work before it begins, since nothing interrupts a function
// that runs: work that costs more than is left does not begin.
type meter struct {
	done <-chan struct{}
	left int64
	// next is what is left when the clock is looked at next.
	next int64
	// began is when the clock was looked at first.
	began time.Time
}

// fill readies the meter for a decision, which ends early with the context.
func (m *meter) fill(ctx context.Context) {
	*m = meter{done: ctx.Done(), left: allowance, next: allowance - lookEvery}
}

// spend pays for work, or ends the evaluation.
func (m *meter) spend(units int64) {
	m.left -= min(units, allowance+1)
	if m.left < m.next {
		m.look()
	}
}

// look ends the evaluation when it has taken too long or nobody waits for it. CEL
// recovers from this panic, as from that of its own bound of costs.
func (m *meter) look() {
	now := time.Now()
	if m.began.IsZero() {
		m.began = now
	}
	if m.left < 0 || now.Sub(m.began) > interruptAfter || ended(m.done) {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: "interrupted"})
	}
	m.next = max(0, m.left-lookEvery)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// meterOf returns the meter of the decision that a frame belongs to: the outermost
// activation is its run.
func meterOf(frame *interpreter.ExecutionFrame) *meter {
	for a := frame.Activation; ; a = a.Parent() {
		if r, ok := a.(*run); ok {
			return &r.meter
		}
	}
}

// charge is what a node pays.
type charge struct {
	// round is the price of a step of a loop, and 0 for anything else.
	round int64
	// after is the price of what is done next with the value; nil when there is none.
	after func(ref.Val) int64
	// eager says that each round looks at the clock.
	eager bool
}

// before pays for what the node does.
func (c *charge) before(m *meter) {
	if m.left -= c.round; m.left < m.next || c.eager {
		m.look()
	}
}

// behind pays for what is done next with the value of the node.
func (c *charge) behind(m *meter, value ref.Val) ref.Val {
	if c.after != nil {
		m.spend(c.after(value))
	}
	return value
}

// metered is a node that pays.
type metered struct {
	interpreter.InterpretableV2
	charge charge
}

// Eval implements [interpreter.Interpretable].
func (n *metered) Eval(vars interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(vars)) }

// Exec implements [interpreter.InterpretableV2].
func (n *metered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	n.charge.before(m)
	return n.charge.behind(m, n.InterpretableV2.Exec(frame))
}

// meteredAttribute is an attribute that pays, which CEL goes on to extend.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
	charge charge
}

// Eval implements [interpreter.Interpretable].
func (n *meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// Exec implements [interpreter.InterpretableV2].
func (n *meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	n.charge.before(m)
	return n.charge.behind(m, n.InterpretableAttribute.Exec(frame))
}

// pricer makes the nodes of an expression pay for what they do: loops for each
// round, functions for what they read.
type pricer struct {
	tree *ast.AST
	// functions are the implementations, by overload and by name.
	functions map[string]*functions.Overload
	// rounds are the prices of the steps of loops, calls those whose price depends on
	// values, and after is what is paid for once the value of a node is known; all by the
	// id of the node.
	rounds map[int64]int64
	calls  map[int64]ast.CallExpr
	after  map[int64]func(ref.Val) int64
	// looped are the nodes that loops evaluate again and again.
	looped map[int64]bool
	// eager says that a key is computed, which may be long and has no price: then each
	// round looks at the clock.
	eager bool
	// short says that the rounds of the last loop that was planned are few and short.
	short bool
}

// callerItems is how many texts a request says of its caller at most.
const callerItems = 32 << 10

func newPricer(tree *ast.AST, known map[string]*functions.Overload) *pricer {
	p := &pricer{
		tree: tree, functions: known, rounds: map[int64]int64{}, calls: map[int64]ast.CallExpr{},
		after: map[int64]func(ref.Val) int64{}, looped: map[int64]bool{},
	}
	visit(tree.Expr(), p.plan)
	return p
}

// charges reports whether anything in the expression has a price. A single short loop,
// such as one over principal.scopes, has none: it is in nearly every policy.
func (p *pricer) charges() bool {
	if p.short && !p.eager && len(p.rounds) == 1 {
		return len(p.calls)+len(p.after) > 0
	}
	return len(p.rounds)+len(p.calls)+len(p.after) > 0
}

// plan finds out what is paid for at a node.
func (p *pricer) plan(e ast.Expr) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		round := priceNode * (p.repeat(loop.LoopCondition()) + p.repeat(loop.LoopStep()))
		p.rounds[loop.LoopStep().ID()] = round
		p.short = p.brief(loop.IterRange()) && round*callerItems <= allowance/4
		if p.kind(loop.IterRange()) != types.ListKind {
			p.after[loop.IterRange().ID()] = priceWalk
		}
	case ast.MapKind:
		if slices.ContainsFunc(e.AsMap().Entries(), func(entry ast.EntryExpr) bool { return !p.small(entry.AsMapEntry().Key()) }) {
			p.after[e.ID()] = priceKeys
		}
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
	}
}

// repeat notes that a loop evaluates e again and again, and counts the nodes in it.
func (p *pricer) repeat(e ast.Expr) int64 {
	n := int64(0)
	visit(e, func(e ast.Expr) {
		n++
		p.looped[e.ID()] = true
	})
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

// brief reports whether comparing with e, or looking in it, takes so little that it is
// not worth its price: e is small or, outside of loops, a text, a list of texts or a map
// of what a request says of its caller, which comes in headers of 64 KiB at most.
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

// holdsMany reports whether a value of e may be a list or a map that is not written out.
func (p *pricer) holdsMany(e ast.Expr) bool {
	switch p.kind(e) {
	case types.ListKind, types.MapKind, types.StructKind, types.DynKind:
		return !writtenOut(e)
	}
	return false
}

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
	priced := &pricedCall{id: call.ID(), function: call.Function(), overload: call.OverloadID(), args: call.Args()}
	switch priced.function {
	case overloads.Matches:
		pattern, err := patternOf(written[1])
		if err != nil {
			return nil, err
		}
		return &pricedMatch{*priced, pattern}, nil
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

// pricedCall is a call that pays once its arguments are known, and before it is made.
type pricedCall struct {
	id                 int64
	function, overload string
	args               []interpreter.InterpretableV2
	// impl is nil for a method that its receiver implements.
	impl *functions.Overload
}

// ID implements [interpreter.Interpretable].
func (c *pricedCall) ID() int64 { return c.id }

// Eval implements [interpreter.Interpretable].
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements [interpreter.InterpretableV2].
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [4]ref.Val // most calls allocate nothing for their arguments
	args, doubt := c.evaluate(frame, few[:0])
	if doubt != nil {
		return doubt
	}
	m := meterOf(frame)
	m.spend(priceOf(c.function, args, m.left))
	return types.LabelErrNode(c.id, c.call(args))
}

// evaluate appends the arguments to args, or returns the error or the unknown among them.
func (c *pricedCall) evaluate(frame *interpreter.ExecutionFrame, args []ref.Val) (all []ref.Val, doubt ref.Val) {
	var unknown *types.Unknown
	for _, arg := range c.args {
		value := arg.Exec(frame)
		if types.IsError(value) {
			return nil, value
		}
		unknown, _ = types.MaybeMergeUnknowns(value, unknown)
		args = append(args, value)
	}
	if unknown != nil {
		return nil, unknown
	}
	return args, nil
}

// call calls the implementation as CEL does.
func (c *pricedCall) call(args []ref.Val) ref.Val {
	fits := c.impl != nil && (c.impl.OperandTrait == 0 || args[0].Type().HasTrait(c.impl.OperandTrait))
	switch {
	case fits && len(args) == 1 && c.impl.Unary != nil:
		return c.impl.Unary(args[0])
	case fits && len(args) == 2 && c.impl.Binary != nil:
		return c.impl.Binary(args[0], args[1])
	case fits && c.impl.Function != nil:
		return c.impl.Function(slices.Clone(args)...)
	case args[0].Type().HasTrait(traits.ReceiverType):
		return args[0].(traits.Receiver).Receive(c.function, c.overload, slices.Clone(args[1:]))
	}
	return types.NewErr("no such overload: %s", c.function)
}
