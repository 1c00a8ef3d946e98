package policylang

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// run is one decision: the [interpreter.Activation] that gives an expression
// the values of an [Input] where they stand.
type evaluation struct {
	in  Input
	env *Env
	// unknown are the parts that are not known.
	unknown Parts
	// meter bounds what all expressions of the decision take together.
	meter meter
}

// start readies a run, which must be stopped again.
func (e *Env) start(ctx context.Context, in Input) *evaluation {
	r := e.runs.Get().(*evaluation)
	r.in, r.env, r.unknown = in, e, in.Unknown
	r.meter.reset(ctx)
	return r
}

// stop lets go of a run and of the Input in it.
func (e *Env) stop(r *evaluation) {
	*r = evaluation{}
	e.runs.Put(r)
}

func (r *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return r.known(PartArgs, r.in.Args), true
	case "result":
		return r.known(PartResult, r.in.Result), true
	case "content":
		return r.known(PartResult, r.in.Content), true
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

// known returns the value of a part, or what stands for a part that is not known.
func (r *evaluation) known(part Parts, value any) any {
	if r.unknown&part != 0 {
		return r.env.blank
	}
	return value
}

func (r *evaluation) Parent() interpreter.Activation { return nil }

// hides reports whether an expression reads what is not known, other than what CEL knows
// to be open.
func (r *evaluation) readsUnknown(x *expression) bool { return x.reads&r.unknown&^trackedByCEL != 0 }

// decide evaluates a condition. The failure is set when the value is Failed.
func (x *expression) decide(r *evaluation) (Value, *failure) {
	if r.readsUnknown(x) {
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
func (x *expression) evalReason(r *evaluation) (said string, cut bool, err *failure) {
	if r.readsUnknown(x) {
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
func (x *expression) eval(r *evaluation) (ref.Val, *failure) {
	value, _, err := x.program.Eval(r)
	return value, x.failureOf(r, value, err)
}

// blame finds out where an evaluation failed and says why in words that hold
// no values.
func (x *expression) failureOf(r *evaluation, value ref.Val, err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{place: x.whole, problem: "it cannot be evaluated"}
	if strings.Contains(err.Error(), beyondInt64) {
		if name := x.beyondInt64Argument(r.in.Args); name != "" {
			f.problem = fmt.Sprintf("%q holds an integer beyond 64 bits", name)
			return f
		}
	}
	var at *types.Err
	if errors.As(err, &at) || asErr(value, &at) {
		if id := at.NodeID(); id > 0 {
			f.place = x.places.at(x.places.tokenRange(id))
			f.problem = problemWords(err.Error(), x.places.member(id))
			return f
		}
	}
	f.problem = problemWords(err.Error(), "")
	return f
}

// beyond returns the first argument that the expression names and that holds an integer
// beyond int64. The name is as the author wrote it.
func (x *expression) beyondInt64Argument(args map[string]any) string {
	for i := range x.places.tokens {
		if x.places.word(i) != "args" {
			continue
		}
		for next := i + 1; next < min(i+4, len(x.places.tokens)); next++ {
			if name := strings.Trim(x.places.word(next), "`"); holdsBeyondInt64(args[name], 0) {
				return name
			}
		}
	}
	return ""
}

// maxBeyond is how deep in an argument an integer beyond int64 is looked for.
const maxBeyondDepth = 8

func holdsBeyondInt64(value any, depth int) bool {
	if depth == maxBeyondDepth {
		return false
	}
	switch v := value.(type) {
	case *big.Int:
		return true
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holdsBeyondInt64(item, depth+1) })
	case map[string]any:
		for _, item := range v {
			if holdsBeyondInt64(item, depth+1) {
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

// ToolFacts is what a policy may know of the tool that is called, or of the
// resource or the prompt.
type ToolFacts struct {
	// Kind is "tool", "resource" or "prompt".
	Kind        string
	Name, Title string
	// Labels are the tool's labels; policies read them, clients never do.
	Labels map[string]string
	// The four are MCP's annotations with their defaults filled in.
	ReadOnly, Idempotent, Destructive, OpenWorld bool
}

// CallFacts is what a policy may know of the call itself.
type CallFacts struct {
	// ID names the call.
	ID string
	// Via says what made the call: "client", "code", "tool" or "test".
	Via string
	// Depth counts the calls that this one is nested in: 0 for a client's own.
	Depth int
	// Parent is the name of the tool that made this call, and of what is no tool such
	// as "prompt:NAME"; empty at depth 0.
	Parent string
}

// Input is all that a decision depends on. Nothing in it is changed, and
// nothing of it is kept after the decision.
type Input struct {
	Caller identity.Caller
	Tool   ToolFacts
	// Args are the decoded arguments after defaults and `from`. An argument
	// that is absent there is absent in the policy. Partial does not read them.
	Args map[string]any
	// Result is what the call returned, as [Policy.Result] decodes it, and Content the
	// content blocks that a client is sent, as decoded JSON; nil before.
	Result  any
	Content []any
	Call    CallFacts
	// Now is the time of the call; policies have no other clock.
	Now time.Time
	// Unknown are the parts of the input of which not all is known: none in a call.
	Unknown Parts
	// Hide takes what nobody may read out of a reason before that is cut, as a part of a
	// value is not known for one; nil takes nothing.
	Hide func(reason string) string
}

// Parts are parts of an [Input]. What not all is known of is open in all that reads it.
type Parts uint8

const (
	// PartArgs are the arguments, and PartResult what the call returned and its content.
	PartArgs Parts = 1 << iota
	PartResult
	PartPrincipal
	PartAgent
	PartSource
	// PartParent is the name of what made the call.
	PartParent
)

// withinCEL are the parts that CEL itself knows to be open, and so which expressions do
// not depend on them after all. Of the others, expressions that read any are open.
const trackedByCEL = PartArgs | PartResult

// String names the parts as policies do.
func (p Parts) String() string {
	var names []string
	for ; p != 0; p &= p - 1 {
		names = append(names, [...]string{"args", "result", "principal", "agent", "source", "call.parent"}[bits.TrailingZeros8(uint8(p))])
	}
	return strings.Join(names, ", ")
}

// partsOf returns the parts that an expression reads, which reads these variables.
func partsOf(e ast.Expr, names map[string]bool) Parts {
	var parts Parts
	for name, part := range map[string]Parts{
		"args": PartArgs, "result": PartResult, "content": PartResult, "principal": PartPrincipal, "agent": PartAgent, "source": PartSource,
	} {
		if names[name] {
			parts |= part
		}
	}
	if names["call"] && readsParent(e) {
		parts |= PartParent
	}
	return parts
}

// readsParent reports whether an expression may read call.parent: it does, or uses call
// for anything but another member.
func readsParent(e ast.Expr) bool {
	whole, others := 0, 0
	visit(e, func(e ast.Expr) {
		if e.AsIdent() == "call" {
			whole++
		}
		if member := path(e); len(member) == 2 && member[0] == "call" && member[1] != "parent" {
			others++
		}
	})
	return whole > others
}

// The most that a call may return for policies to judge it.
const (
	resultBytes  = 24 << 20
	resultDepth  = 72
	resultTokens = 250_000
)

// judged bounds the text of what policies judge: nothing interrupts a decoder.
func judged() jsonguard.Limits {
	return jsonguard.Limits{Bytes: resultBytes, Depth: resultDepth, Tokens: resultTokens, Halves: true}
}

// Result decodes what a call returned for policies that judge it: all those of one
// tool decode it alike. It refuses more than 24 MiB, or 250,000 of the characters
// []{}:, outside of strings.
func (p *Policy) Result(text json.RawMessage) (any, error) {
	if err := jsonguard.Check(text, judged()); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	return typeNumbers(value, p.result), nil
}

// Content decodes the content blocks of a result for policies that judge them. It
// refuses what [Policy.Result] refuses.
func (p *Policy) Content(text json.RawMessage) ([]any, error) {
	if err := jsonguard.Check(text, judged()); err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	var blocks []any
	if err := json.Unmarshal(text, &blocks); err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	return blocks, nil
}

// ReadsContent reports whether the policy looks at the content blocks of a result.
func (p *Policy) ReadsContent() bool {
	return p.verdict.names["content"] || p.when != nil && p.when.names["content"]
}
