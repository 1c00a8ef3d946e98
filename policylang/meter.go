package policylang

import (
	"context"
	"time"

	"github.com/google/cel-go/common/types/ref"
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

// exec evaluates a node, which pays for it.
func (c *charge) exec(node interpreter.InterpretableV2, frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	m.spend(c.round)
	if c.eager {
		m.look()
	}
	value := node.Exec(frame)
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
	return n.charge.exec(n.InterpretableV2, frame)
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
	return n.charge.exec(n.InterpretableAttribute, frame)
}
