package policylang

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// maxRegexSize bounds the compiled instructions of a regular expression.
const maxRegexSize = 10_000

// priceRound is the price of one instruction of a regular expression at one character.
const priceRound = 10

// shortMatch is the maximum price of a match in one step. A longer text is passed to the
// matcher rune by rune, so that it can be interrupted.
const shortMatch = maxUnits / 20

// pattern is a regular expression and its number of instructions.
type pattern struct {
	compiled *regexp.Regexp
	size     int64
}

// patternOf compiles the pattern of a match. It returns nil if the pattern is not a literal.
func patternOf(e ast.Expr) (*pattern, error) {
	text, ok := textIn(e)
	if !ok {
		return nil, nil
	}
	return newPattern(text)
}

// newPattern compiles a pattern that is not too large. It estimates the size first, because a
// part may be repeated a thousand times.
func newPattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(parsed)
	if size > maxRegexSize {
		return nil, fmt.Errorf("the regular expression has more than %d parts, which is unsupported", maxRegexSize)
	}
	compiled, err := regexp.Compile(text)
	return &pattern{compiled, size}, err
}

// instructions bounds the number of instructions of a regular expression.
func instructions(re *syntax.Regexp) int64 {
	n := int64(2)
	if re.Op == syntax.OpLiteral {
		n += int64(len(re.Rune))
	}
	for _, sub := range re.Sub {
		n = add(n, instructions(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = times(n, int64(max(1, re.Min, re.Max)))
	}
	return n
}

// match matches a text. Each rune costs at most one step of each instruction.
func (p *pattern) match(text string, m *meter) bool {
	each := priceRound * (1 + p.size)
	if price := times(int64(len(text)), each); price <= shortMatch {
		m.charge(price)
		return p.compiled.MatchString(text)
	}
	return p.compiled.MatchReader(&meteredReader{rest: text, meter: m, each: each})
}

// meteredReader charges for each rune that a matcher reads.
type meteredReader struct {
	rest  string
	meter *meter
	each  int64
	// unpaid is the price of the runes not charged yet.
	unpaid int64
}

func (r *meteredReader) ReadRune() (rune, int, error) {
	if r.rest == "" {
		return 0, 0, io.EOF
	}
	if r.unpaid += r.each; r.unpaid > checkInterval {
		// Only the clock shows how many instructions a rune takes.
		r.unpaid = 0
		r.meter.checkDeadline()
	}
	c, n := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[n:]
	return c, n, nil
}

// meteredMatch is a meteredCall for matches that also charges during the match.
type meteredMatch struct {
	meteredCall
	// written is nil if the pattern is computed.
	written *pattern
}

func (c *meteredMatch) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

func (c *meteredMatch) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [2]ref.Val
	args, doubt := c.evaluate(frame, few[:0])
	if doubt != nil {
		return doubt
	}
	m := meterOf(frame)
	text, ok := args[0].(types.String)
	if !ok {
		return types.NewErrWithNodeID(c.id, "no such overload: matches")
	}
	p := c.written
	if p == nil {
		var err error
		if p, err = computedPattern(args[1], m); err != nil {
			return types.LabelErrNode(c.id, types.WrapErr(err))
		}
	}
	return types.Bool(p.match(string(text), m))
}

// computedPattern compiles a pattern during a decision.
func computedPattern(v ref.Val, m *meter) (*pattern, error) {
	text, ok := v.(types.String)
	if !ok {
		return nil, fmt.Errorf("no such overload: matches")
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes: unsupported", maxPattern)
	}
	p, err := newPattern(string(text))
	if err == nil {
		m.charge(times(p.size, priceInstruction))
	}
	return p, err
}
