package policylang

import (
	"context"
	"slices"
	"time"

	"github.com/google/cel-go/common/functions"
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
