package policylang

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

// run is one decision: the [interpreter.Activation] that gives an expression
// the values of an [Input] where they stand.
type run struct {
	in  Input
	env *Env
	// unknown are the parts that are not known.
	unknown Parts
	// meter bounds what all expressions of the decision take together.
	meter meter
}

// start readies a run, which must be stopped again.
func (e *Env) start(ctx context.Context, in Input) *run {
	r := e.runs.Get().(*run)
	r.in, r.env, r.unknown = in, e, in.Unknown
	r.meter.fill(ctx)
	return r
}

// stop lets go of a run and of the Input in it.
func (e *Env) stop(r *run) {
	*r = run{}
	e.runs.Put(r)
}

// ResolveName implements [interpreter.Activation].
func (r *run) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		if r.unknown&PartArgs != 0 {
			return r.env.blank, true
		}
		return r.in.Args, true
	case "result":
		if r.unknown&PartResult != 0 {
			return r.env.blank, true
		}
		return r.in.Result, true
	case "content":
		if r.unknown&PartResult != 0 {
			return r.env.blank, true
		}
		return r.in.Content, true
	case "vars":
		return r.env.vars, true
	case "agent":
		return &r.in.Caller.Agent, true
	case "principal":
		return &r.in.Caller.Principal, true
	case "tool":
		return &r.in.Tool, true
	case "call":
		return &r.in.Call, true
	case "source":
		return &r.in.Caller.Source, true
	case "now":
		return types.Timestamp{Time: r.in.Now.UTC()}, true
	}
	return nil, false
}

// Parent implements [interpreter.Activation].
func (r *run) Parent() interpreter.Activation { return nil }

// hides reports whether an expression reads what is not known, other than what CEL knows
// to be open.
func (r *run) hides(x *expression) bool { return x.reads&r.unknown&^withinCEL != 0 }

// decide evaluates a condition. The failure is set when the value is Failed.
func (x *expression) decide(r *run) (Value, *failure) {
	if r.hides(x) {
		return Open, nil
	}
	value, err := x.eval(r)
	switch {
	case err != nil:
		return Failed, err
	case value == types.True:
		return True, nil
	case value == types.False:
		return False, nil
	case types.IsUnknown(value):
		return Open, nil
	}
	return Failed, &failure{place: x.whole, problem: fmt.Sprintf("%s is not true or false but %s", x.role, typeWords(value.Type().TypeName()))}
}

// maxReason bounds, in bytes, a reason that is computed.
const maxReason = 4 << 10

// words evaluates a reason. It is empty when what it needs is not known.
func (x *expression) words(r *run) (said string, cut bool, err *failure) {
	if r.hides(x) {
		return "", false, nil
	}
	value, err := x.eval(r)
	if err != nil {
		return "", false, err
	}
	if types.IsUnknown(value) {
		return "", false, nil
	}
	text, ok := value.(types.String)
	if !ok {
		return "", false, &failure{place: x.whole, problem: fmt.Sprintf("reason is not a string but %s", typeWords(value.Type().TypeName()))}
	}
	said = string(text)
	if r.in.Hide != nil {
		said = r.in.Hide(said)
	}
	return truncate.Start(said, maxReason), len(said) > maxReason, nil
}

// eval evaluates the expression.
func (x *expression) eval(r *run) (ref.Val, *failure) {
	value, _, err := x.program.Eval(r)
	return value, x.blame(r, value, err)
}

// blame finds out where an evaluation failed and says why in words that hold
// no values.
func (x *expression) blame(r *run, value ref.Val, err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{place: x.whole, problem: "it cannot be evaluated"}
	if strings.Contains(err.Error(), beyondInt64) {
		if name := x.beyond(r.in.Args); name != "" {
			f.problem = fmt.Sprintf("%q holds an integer beyond 64 bits", name)
			return f
		}
	}
	var at *types.Err
	if errors.As(err, &at) || asErr(value, &at) {
		if id := at.NodeID(); id > 0 {
			f.place = x.places.at(x.places.point(id))
			f.problem = problemWords(err.Error(), x.places.member(id))
			return f
		}
	}
	f.problem = problemWords(err.Error(), "")
	return f
}

// beyond returns the first argument that the expression names and that holds an integer
// beyond int64. The name is as the author wrote it.
func (x *expression) beyond(args map[string]any) string {
	for i := range x.places.tokens {
		if x.places.word(i) != "args" {
			continue
		}
		for next := i + 1; next < min(i+4, len(x.places.tokens)); next++ {
			if name := strings.Trim(x.places.word(next), "`"); holdsBeyond(args[name], 0) {
				return name
			}
		}
	}
	return ""
}

// maxBeyond is how deep in an argument an integer beyond int64 is looked for.
const maxBeyond = 8

func holdsBeyond(value any, depth int) bool {
	if depth == maxBeyond {
		return false
	}
	switch v := value.(type) {
	case *big.Int:
		return true
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holdsBeyond(item, depth+1) })
	case map[string]any:
		for _, item := range v {
			if holdsBeyond(item, depth+1) {
				return true
			}
		}
	}
	return false
}

func asErr(value ref.Val, into **types.Err) bool {
	e, ok := value.(*types.Err)
	*into = e
	return ok
}

// problemWords says what CEL's message is about, without what it quotes.
func problemWords(message, member string) string {
	switch {
	case strings.Contains(message, beyondInt64):
		return "an integer is beyond 64 bits"
	case strings.Contains(message, "no such key"), strings.Contains(message, "no such attribute"):
		if member != "" {
			return fmt.Sprintf("%q is absent", member)
		}
		return "a key is absent"
	case strings.Contains(message, "index out of bounds"):
		return "a list is shorter than that"
	case strings.Contains(message, "no such overload"), strings.Contains(message, "unsupported"):
		return "a value is of another type than this needs"
	case strings.Contains(message, "by zero"):
		return "division by zero"
	case strings.Contains(message, "overflow"), strings.Contains(message, "range"):
		return "a number is out of range"
	case strings.Contains(message, "interrupted"):
		return fmt.Sprintf("it took longer than %v", interruptAfter)
	}
	return "it cannot be evaluated"
}
