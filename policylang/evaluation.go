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

// evaluation is the state of one decision. It is the [interpreter.Activation] that reads the
// values of an [Input] without copying them.
type evaluation struct {
	in  Input
	env *Env
	// unknown are the unknown parts.
	unknown Parts
	// other is the second principal of an [Access].
	other identity.Principal
	// meter bounds the total work of all expressions of the decision.
	meter meter
}

// start prepares an evaluation. The caller must stop it.
func (e *Env) start(ctx context.Context, in Input) *evaluation {
	r := e.runs.Get().(*evaluation)
	r.in, r.env, r.unknown = in, e, in.Unknown
	r.meter.reset(ctx)
	return r
}

// stop releases an evaluation and its Input.
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
	case "other":
		return &r.other, true
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

// known returns the value of a part, or the blank if the part is unknown.
func (r *evaluation) known(part Parts, value any) any {
	if r.unknown&part != 0 {
		return r.env.blank
	}
	return value
}

func (r *evaluation) Parent() interpreter.Activation { return nil }

// readsUnknown reports whether an expression reads an unknown part that CEL does not track.
func (r *evaluation) readsUnknown(x *expression) bool { return x.reads&r.unknown&^trackedByCEL != 0 }

// decide evaluates a condition. The failure is set if the value is Failed.
func (x *expression) decide(r *evaluation) (Value, *failure) {
	if r.readsUnknown(x) {
		return Indeterminate, nil
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
		return Indeterminate, nil
	}
	return Failed, &failure{place: x.whole, problem: fmt.Sprintf("%s is not true or false but %s", x.role, typeWords(value.Type().TypeName()))}
}

// maxReason bounds a computed reason, in bytes.
const maxReason = 4 << 10

// evalReason evaluates a reason. It is empty if it depends on unknown parts.
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
	if r.in.Redact != nil {
		said = r.in.Redact(said)
	}
	return truncate.Start(said, maxReason), len(said) > maxReason, nil
}

// eval evaluates the expression.
func (x *expression) eval(r *evaluation) (ref.Val, *failure) {
	value, _, err := x.program.Eval(r)
	return value, x.failureOf(r, value, err)
}

// failureOf locates an evaluation error and describes it without values.
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

// beyondInt64Argument returns the first argument in the expression that holds an integer beyond
// int64, as written by the author.
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

// maxBeyondDepth bounds the depth of the search for an integer beyond int64.
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

// problemWords describes a message of CEL without the values that it quotes.
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
		return "a list index is out of range"
	case strings.Contains(message, "no such overload"), strings.Contains(message, "unsupported"):
		return "a value has the wrong type"
	case strings.Contains(message, "by zero"):
		return "division by zero"
	case strings.Contains(message, "overflow"), strings.Contains(message, "range"):
		return "a number is out of range"
	case strings.Contains(message, "interrupted"):
		return fmt.Sprintf("it took longer than %v", interruptAfter)
	}
	return "it cannot be evaluated"
}

// ToolFacts is the data about the called tool, resource or prompt that policies can read.
type ToolFacts struct {
	// Kind is "tool", "resource" or "prompt".
	Kind        string
	Name, Title string
	// Labels are the tool's labels. Policies read them; clients never see them.
	Labels map[string]string
	// These are the annotations of MCP, with defaults filled in.
	ReadOnly, Idempotent, Destructive, OpenWorld bool
}

// CallFacts is the data about the call that policies can read.
type CallFacts struct {
	// ID identifies the call.
	ID string
	// Via is the origin of the call: "client", "code", "tool" or "test".
	Via string
	// Depth is the nesting depth: 0 for a call of a client.
	Depth int
	// Parent is the name of the tool that made this call, or a name such as "prompt:NAME" for
	// any other caller. It is empty at depth 0.
	Parent string
}

// Input is everything that a decision depends on. A decision does not modify or retain it.
type Input struct {
	// Caller is the caller, and Tool the called item.
	Caller identity.Caller
	Tool   ToolFacts
	// Args are the decoded arguments after defaults and `from`. A missing key is an absent
	// argument. Partial does not read Args.
	Args map[string]any
	// Result is the returned value, as decoded by [Policy.Result]. Content are the content
	// blocks for the client, as decoded JSON. Both are nil before the call.
	Result  any
	Content []any
	// Call is the data about the call itself.
	Call CallFacts
	// Now is the time of the call. Policies have no other clock.
	Now time.Time
	// Unknown are the parts of the input that are not fully known. It is zero in a call.
	Unknown Parts
	// Redact redacts a computed reason before it is truncated, so that no partial secret remains.
	// If nil, reasons are not redacted.
	Redact func(reason string) string
}

// Parts is a set of parts of an [Input]. An expression that reads an unknown part is
// indeterminate.
type Parts uint8

const (
	// PartArgs are the arguments.
	PartArgs Parts = 1 << iota
	// PartResult is the result and its content.
	PartResult
	// PartPrincipal, PartAgent and PartSource are the parts of the caller.
	PartPrincipal
	PartAgent
	PartSource
	// PartParent is the name of the caller.
	PartParent
)

// trackedByCEL are the parts that CEL tracks as unknown, so it finds out whether the value
// depends on them. An expression that reads any other unknown part is indeterminate.
const trackedByCEL = PartArgs | PartResult

// String returns the parts by their names in policies.
func (p Parts) String() string {
	var names []string
	for ; p != 0; p &= p - 1 {
		names = append(names, [...]string{"args", "result", "principal", "agent", "source", "call.parent"}[bits.TrailingZeros8(uint8(p))])
	}
	return strings.Join(names, ", ")
}

// partsOf returns the parts that an expression with these variables reads.
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

// readsParent reports whether an expression may read call.parent: it reads that member, or call
// as a whole.
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

// Limits of a result or content that policies judge.
const (
	resultBytes  = 24 << 20
	resultDepth  = 72
	resultTokens = 250_000
)

// judged returns the limits for decoding, because a decoder cannot be interrupted.
func judged() jsonguard.Limits {
	return jsonguard.Limits{Bytes: resultBytes, Depth: resultDepth, Tokens: resultTokens, Halves: true}
}

// Result decodes the result of a call for policies with OnResult. All policies of a tool decode
// it the same way. It returns an error for more than 24 MiB, or for more than 250,000 of the
// characters []{}:, outside of strings.
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

// Content decodes the content blocks of a result for policies. It has the limits of
// [Policy.Result].
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

// ReadsContent reports whether the policy reads the content blocks of a result.
func (p *Policy) ReadsContent() bool {
	return p.verdict.names["content"] || p.when != nil && p.when.names["content"]
}
