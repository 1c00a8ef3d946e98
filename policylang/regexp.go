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

// maxRegexSize bounds the instructions that a regular expression compiles to.
const maxRegexSize = 10_000

// priceRound is for one instruction of a regular expression at one character.
const priceRound = 10

// shortMatch is the price up to which a text is matched at once. A longer one is fed
// to the matcher rune by rune, so that it can be interrupted.
const shortMatch = allowance / 20

// pattern is a regular expression and how many instructions it has.
type pattern struct {
	compiled *regexp.Regexp
	size     int64
}

// patternOf compiles the pattern of a match, or returns nil for one that is not
// written out.
func patternOf(e ast.Expr) (*pattern, error) {
	if e.Kind() != ast.LiteralKind {
		return nil, nil
	}
	text, ok := e.AsLiteral().(types.String)
	if !ok {
		return nil, nil
	}
	return newPattern(string(text))
}

// newPattern compiles a pattern that is small enough. How large it will be is known
// before it is compiled: a part may be repeated a thousand times.
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

// instructions bounds how many instructions a regular expression compiles to.
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

// match matches a text. Each rune costs at most a step of each instruction.
func (p *pattern) match(text string, m *meter) bool {
	each := priceRound * (1 + p.size)
	if price := times(int64(len(text)), each); price <= shortMatch {
		m.spend(price)
		return p.compiled.MatchString(text)
	}
	return p.compiled.MatchReader(&slowReader{rest: text, meter: m, each: each})
}

// slowReader pays for each rune that a matcher reads.
type slowReader struct {
	rest  string
	meter *meter
	each  int64
	// owed is what is not paid yet.
	owed int64
}

// ReadRune implements [io.RuneReader].
func (r *slowReader) ReadRune() (rune, int, error) {
	if r.rest == "" {
		return 0, 0, io.EOF
	}
	if r.owed += r.each; r.owed > lookEvery {
		// How many instructions a rune takes is known by the clock alone.
		r.owed = 0
		r.meter.look()
	}
	c, n := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[n:]
	return c, n, nil
}

// pricedMatch is a call of matches.
type pricedMatch struct {
	pricedCall
	// written is nil when the pattern is computed.
	written *pattern
}

// Eval implements [interpreter.Interpretable].
func (c *pricedMatch) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements [interpreter.InterpretableV2].
func (c *pricedMatch) Exec(frame *interpreter.ExecutionFrame) ref.Val {
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
		m.spend(times(p.size, priceInstruction))
	}
	return p, err
}
