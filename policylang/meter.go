package policylang

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// interruptAfter is the time limit of a decision.
	interruptAfter = 100 * time.Millisecond
	// maxUnits is the budget of a decision, in units of about a nanosecond.
	maxUnits = int64(interruptAfter)
	// checkInterval is the number of units between two checks of the clock.
	checkInterval = maxUnits / 1000
)

// meter bounds the processor time of a decision. CEL's cost limit cannot: it counts a call
// after the call has returned, and allocates for each node (decision 61). The meter charges for
// work before the work starts, because a running function cannot be interrupted. Work that
// exceeds the remaining units does not start.
type meter struct {
	ctx       context.Context
	remaining int64
	// nextCheck is the number of remaining units at which to check the clock next.
	nextCheck int64
	// started is the time of the first check of the clock.
	started time.Time
}

// reset prepares the meter for a decision. The decision ends early when the context does.
func (m *meter) reset(ctx context.Context) {
	*m = meter{ctx: ctx, remaining: maxUnits, nextCheck: maxUnits - checkInterval}
}

// charge pays for work, or ends the evaluation.
func (m *meter) charge(units int64) {
	m.remaining -= min(units, maxUnits+1)
	if m.remaining < m.nextCheck {
		m.checkDeadline()
	}
}

// checkDeadline ends the evaluation if it takes too long or its context has ended. It panics;
// CEL recovers from it like from the panic of its own cost limit.
func (m *meter) checkDeadline() {
	now := time.Now()
	if m.started.IsZero() {
		m.started = now
	}
	if m.remaining < 0 || now.Sub(m.started) > interruptAfter || m.ctx.Err() != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: "interrupted"})
	}
	m.nextCheck = max(0, m.remaining-checkInterval)
}

// meterOf returns the meter of the decision that runs frame. The outermost activation is the
// evaluation.
func meterOf(frame *interpreter.ExecutionFrame) *meter {
	for a := frame.Activation; ; a = a.Parent() {
		if r, ok := a.(*evaluation); ok {
			return &r.meter
		}
	}
}

// charge is the cost of a node.
type charge struct {
	// round is the price of one step of a loop, and 0 for other nodes.
	round int64
	// after is the price of the next operation on the value, or nil.
	after func(ref.Val) int64
	// checkEachRound means that each round checks the clock.
	checkEachRound bool
}

// chargeRound charges for the work of the node.
func (c *charge) chargeRound(m *meter) {
	if m.remaining -= c.round; m.remaining < m.nextCheck || c.checkEachRound {
		m.checkDeadline()
	}
}

// chargeValue charges for the next operation on the value of the node.
func (c *charge) chargeValue(m *meter, value ref.Val) ref.Val {
	if c.after != nil {
		m.charge(c.after(value))
	}
	return value
}

// metered is a node with a charge.
type metered struct {
	interpreter.InterpretableV2
	charge charge
}

func (n *metered) Eval(vars interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(vars)) }

func (n *metered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	n.charge.chargeRound(m)
	return n.charge.chargeValue(m, n.InterpretableV2.Exec(frame))
}

// meteredAttribute is an attribute with a charge. CEL may extend it.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
	charge charge
}

func (n *meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

func (n *meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterOf(frame)
	n.charge.chargeRound(m)
	return n.charge.chargeValue(m, n.InterpretableAttribute.Exec(frame))
}

// meteredCall is a call that charges after its arguments are evaluated and before it runs.
type meteredCall struct {
	id                 int64
	function, overload string
	args               []interpreter.InterpretableV2
	// impl is nil for a method that its receiver implements.
	impl *functions.Overload
}

func (c *meteredCall) ID() int64 { return c.id }

func (c *meteredCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

func (c *meteredCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [4]ref.Val // avoids an allocation in most calls
	args, doubt := c.evaluate(frame, few[:0])
	if doubt != nil {
		return doubt
	}
	m := meterOf(frame)
	m.charge(priceOf(c.function, args, m.remaining))
	return types.LabelErrNode(c.id, c.call(args))
}

// evaluate appends the values of the arguments to args. It returns the first error, or else the
// unknown among them, as doubt.
func (c *meteredCall) evaluate(frame *interpreter.ExecutionFrame, args []ref.Val) (all []ref.Val, doubt ref.Val) {
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

// call calls the implementation like CEL does.
func (c *meteredCall) call(args []ref.Val) ref.Val {
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

// Prices of work, in the units of a [meter].
const (
	// priceNode is the price of evaluating a node once.
	priceNode = 20
	// priceCall is the price of a call; priceItem is the price of each element that a function
	// reads.
	priceCall = 50
	priceItem = 150
	// priceKey is the price of each key of a map that is iterated in order.
	priceKey = 300
	// priceQuoted is the price of a byte that a function may reject and quote, priceRune of a
	// byte that it decodes, and priceCopy of a byte that it searches or copies. Comparing costs
	// one unit for compareBytes bytes.
	priceQuoted  = 40
	priceRune    = 20
	priceCopy    = 2
	compareBytes = 8
	// priceInstruction is the price of an instruction of a computed regular expression.
	priceInstruction = 100
)

// priceOf returns the price of a call with these arguments; most is the remaining budget. An
// unlisted function costs as much as the most expensive function that reads its arguments once.
func priceOf(function string, args []ref.Val, most int64) int64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		return priceCall + priceEqual(args[0], args[1], most)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return priceCall + min(textBytes(args[0]), textBytes(args[1]))/compareBytes
	case operators.In, operators.OldIn:
		return priceCall + priceIn(args[0], args[1], most)
	case overloads.StartsWith, overloads.EndsWith:
		return priceCall + textBytes(args[1])/compareBytes
	case overloads.Size:
		return priceCall + textBytes(args[0])
	case operators.Add, "@add":
		return priceCall + priceCopy*(textBytes(args[0])+textBytes(args[1]))
	case overloads.Contains:
		return priceCall + priceCopy*(textBytes(args[0])+textBytes(args[1]))
	case "charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "substring", "trim":
		return priceCall + priceAll(args, priceRune, most)
	case "replace":
		return priceCall + priceReplace(args)
	case "split":
		return priceCall + priceCopy*textBytes(args[0]) + priceItem*countIn(args[0], args[1])
	case "join":
		return priceCall + priceJoin(args, most)
	case "sets.contains", "sets.equivalent", "sets.intersects":
		return priceCall + priceSets(args, most)
	}
	return priceCall + priceAll(args, priceQuoted, most)
}

// priceAll is the price of a function that reads its arguments fully.
func priceAll(args []ref.Val, eachByte, most int64) int64 {
	sum := int64(0)
	for _, arg := range args {
		l := valueSizeOf(arg, most/priceItem)
		sum = add(sum, add(times(l.items, priceItem), times(l.bytes, eachByte)))
	}
	return sum
}

// priceEqual is the price of a comparison, which stops at the first difference in size.
func priceEqual(a, b ref.Val, most int64) int64 {
	if sizeIn(a) != sizeIn(b) {
		return 0
	}
	return valueSizeOf(a, most/priceItem).compared()
}

// sizeIn returns the size of a text, list or map, and -1 for other values.
func sizeIn(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return int64(n)
	}
	return -1
}

// priceIn is the price of `in` for a list or a map. It iterates over a list only if necessary:
// a text is compared only with elements of its length.
func priceIn(value, in ref.Val, most int64) int64 {
	if _, ok := in.(traits.Mapper); ok {
		return textBytes(value) / compareBytes
	}
	switch value.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
	default:
		if price := times(max(1, sizeIn(in)), priceItem+textBytes(value)/compareBytes); price < maxUnits/10 {
			return price
		}
	}
	return valueSizeOf(in, most/priceItem).compared()
}

// priceReplace is the price of s.replace(old, new), by the size of its result.
func priceReplace(args []ref.Val) int64 {
	n := countIn(args[0], args[1])
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			n = min(n, int64(most))
		}
	}
	return add(times(textBytes(args[0]), 2*priceCopy), times(times(n, textBytes(args[2])+1), 2*priceCopy))
}

// countIn counts the occurrences of part in text. An empty part matches between any two
// characters.
func countIn(text, part ref.Val) int64 {
	s, _ := text.(types.String)
	p, _ := part.(types.String)
	if p == "" {
		return int64(utf8.RuneCountInString(string(s))) + 1
	}
	return int64(strings.Count(string(s), string(p))) + 1
}

func priceJoin(args []ref.Val, most int64) int64 {
	l := valueSizeOf(args[0], most/priceItem)
	if len(args) > 1 {
		l.bytes = add(l.bytes, times(l.items, textBytes(args[1])))
	}
	return add(times(l.items, priceItem), times(l.bytes, 2*priceCopy))
}

// priceSets is the price of functions that look up each element of one list in the other.
func priceSets(args []ref.Val, most int64) int64 {
	a, b := valueSizeOf(args[0], most/priceItem), valueSizeOf(args[1], most/priceItem)
	return add(times(a.compared(), max(1, sizeIn(args[1]))), times(b.compared(), max(1, sizeIn(args[0]))))
}

// textBytes returns the length of a text, and 0 for other values.
func textBytes(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	}
	return 0
}

// valueSize is the total size of a value, including nested values.
type valueSize struct{ items, bytes int64 }

// compared is the price of comparing the value.
func (l valueSize) compared() int64 { return times(l.items, priceItem) + l.bytes/compareBytes }

// valueSizeOf measures a value, up to most items.
func valueSizeOf(v ref.Val, most int64) valueSize {
	l := valueSize{}
	l.add(v, most)
	return l
}

func (l *valueSize) add(v ref.Val, most int64) {
	if l.items++; l.items > most {
		return
	}
	switch v := v.(type) {
	case types.String:
		l.bytes += int64(len(v))
	case types.Bytes:
		l.bytes += int64(len(v))
	case *types.Optional:
		if v.HasValue() {
			l.add(v.GetValue(), most)
		}
	case sortedMap:
		l.addMap(v.Mapper, most)
	case traits.Mapper:
		l.addMap(v, most)
	case traits.Lister:
		for it := v.Iterator(); l.items <= most && it.HasNext() == types.True; {
			l.add(it.Next(), most)
		}
	}
}

func (l *valueSize) addMap(m traits.Mapper, most int64) {
	for it := m.Iterator(); l.items <= most && it.HasNext() == types.True; {
		key := it.Next()
		l.add(key, most)
		l.add(m.Get(key), most)
	}
}

// add and times saturate above maxUnits.
func add(a, b int64) int64 { return min(a, maxUnits+1) + min(b, maxUnits+1) }

func times(a, b int64) int64 {
	if b > 0 && a > (maxUnits+1)/b {
		return maxUnits + 1
	}
	return a * b
}
