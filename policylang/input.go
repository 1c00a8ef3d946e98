package policylang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/google/cel-go/common/ast"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

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
const withinCEL = PartArgs | PartResult

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
		if e.Kind() == ast.IdentKind && e.AsIdent() == "call" {
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
