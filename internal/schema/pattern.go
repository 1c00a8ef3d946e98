package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// longestPattern bounds, in bytes, the patterns of schemas and the strings
	// of format regex.
	longestPattern = 4096
	// largestPattern bounds the instructions that a pattern compiles to.
	largestPattern = 4000
	// cheapPattern is up to how many instructions a byte of text costs little.
	cheapPattern = 32
)

// A pattern is a regular expression of RE2, which matches in time linear in
// the length of the text.
type pattern struct {
	*regexp.Regexp
	// weight is what a byte of text costs, in 16ths of a step.
	weight int
}

// compilePattern compiles a pattern. Its error says what is wrong with it.
func compilePattern(text string) (*pattern, error) {
	if len(text) > longestPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", longestPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	size := len(program.Inst)
	if size > largestPattern {
		return nil, fmt.Errorf("it is too large: use smaller counts than x{1000}")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, weight: size + 8 + 3*max(0, size-cheapPattern)}, nil
}

// cost is how many steps it takes to match a text of n bytes.
func (p *pattern) cost(n int) int { return 1 + n*p.weight/16 }

// isPattern reports whether s is a regular expression.
func isPattern(s string) bool {
	if len(s) > longestPattern {
		return false
	}
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}

// patternWords says what keeps a pattern from compiling.
func patternWords(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Sprintf("%s: %s", e.Code, clip(e.Expr, longestName))
	}
	return err.Error()
}
