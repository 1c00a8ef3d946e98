package policylang

import (
	"math/bits"
	"strings"

	"github.com/google/cel-go/common/ast"
)

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
