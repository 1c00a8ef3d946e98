package schema

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// enumRule is a list of allowed values.
type enumRule struct {
	values []any
	// strings holds the strings; others holds the canonical bytes of other values.
	strings map[string]bool
	others  map[string]bool
	// words describe the allowed values.
	words string
}

func newEnumRule(values []any) *enumRule {
	e := &enumRule{values: values, strings: map[string]bool{}, others: map[string]bool{}, words: listed(values)}
	r := run{}
	for _, v := range values {
		if s, ok := v.(string); ok {
			e.strings[s] = true
		} else {
			e.others[string(r.canonical(v))] = true
		}
	}
	return e
}

func (e *enumRule) has(v any, r *run) bool {
	if s, ok := v.(string); ok {
		return e.strings[s]
	}
	if len(e.others) == 0 {
		return false
	}
	spelled := r.canonical(v)
	return r.step(1+len(spelled)/8) && e.others[string(spelled)]
}

// maxListed bounds the values that a message lists, and maxListedBytes the text of each.
const (
	maxListed      = 20
	maxListedBytes = 64
)

// listed describes the allowed values.
func listed(values []any) string {
	var shown []string
	for _, value := range values[:min(len(values), maxListed)] {
		text, err := appendJSON(nil, value)
		if err == nil {
			shown = append(shown, clip(string(text), maxListedBytes))
		}
	}
	switch more := len(values) - maxListed; {
	case len(values) == 0:
		return notAllowed
	case len(values) == 1:
		return "must be " + shown[0]
	case more > 0:
		return fmt.Sprintf("must be one of %s or %d others", strings.Join(shown, ", "), more)
	}
	return "must be one of " + strings.Join(shown, ", ")
}

// wordsFor describes the allowed values. If the list is abbreviated, it adds the nearest one to
// a string.
func (e *enumRule) wordsFor(v any, r *run) string {
	s, ok := v.(string)
	if len(e.values) <= maxListed || !ok {
		return e.words
	}
	return e.words + r.like(s, e.names())
}

// names returns the strings of the list that are short enough to compare.
func (e *enumRule) names() []string {
	var names []string
	for _, v := range e.values {
		if s, ok := v.(string); ok && len(names) < maxCandidates {
			names = append(names, s)
		}
	}
	return names
}

// stringRule holds the rules of a string.
type stringRule struct {
	// min and max count code points (draft 2020-12 validation section 6.3).
	min, max int
	pattern  *pattern
	format   *format
}

func (t *stringRule) check(s string, r *run) bool {
	ok := true
	// A string of n bytes has between n/4 and n code points.
	if t.min > 0 && (len(s) < t.min || len(s) < 4*t.min && utf8.RuneCountInString(s) < t.min) {
		ok = r.reject(func() string { return count(t.min, leastText, "character") })
	}
	if t.max < math.MaxInt && len(s) > t.max && utf8.RuneCountInString(s) > t.max {
		ok = r.reject(func() string { return count(t.max, mostText, "character") })
	}
	if t.pattern != nil && (ok || r.explain) {
		ok = t.checkPattern(s, r) && ok
	}
	if t.format != nil && (!r.step(t.format.cost*len(s)) || !t.format.valid(s)) {
		ok = r.reject(func() string { return fmt.Sprintf(formatted, t.format.words) })
	}
	return ok
}

func (t *stringRule) checkPattern(s string, r *run) bool {
	if !r.step(t.pattern.cost(len(s))) {
		return false
	}
	if t.pattern.MatchString(s) {
		return true
	}
	return r.reject(func() string { return fmt.Sprintf(matching, t.pattern.String()) })
}

const (
	// maxPatternBytes bounds the patterns of schemas and strings of format regex.
	maxPatternBytes = 4096
	// maxPatternSize bounds the compiled instructions of a pattern.
	maxPatternSize = 4000
	// freePatternSize is the number of instructions up to which a byte of text costs little.
	freePatternSize = 32
)

// pattern is an RE2 pattern. Matching is linear in the length of the text.
type pattern struct {
	*regexp.Regexp
	// weight is the cost of a byte of text, in 16ths of a step.
	weight int
}

// compilePattern compiles a pattern. Its error says what is wrong with it.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPatternBytes)
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
	if size > maxPatternSize {
		return nil, fmt.Errorf("it is too large: use smaller counts than x{1000}")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, weight: size + 8 + 3*max(0, size-freePatternSize)}, nil
}

// cost is the number of steps to match a text of n bytes.
func (p *pattern) cost(n int) int { return 1 + n*p.weight/16 }

// isPattern reports whether s is a regular expression.
func isPattern(s string) bool {
	if len(s) > maxPatternBytes {
		return false
	}
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}

// patternWords describes the error of a pattern.
func patternWords(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Sprintf("%s: %s", e.Code, clip(e.Expr, maxNameBytes))
	}
	return err.Error()
}
