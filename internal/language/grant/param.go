package grant

import (
	"regexp"
	"regexp/syntax"
)

// Param is a value that a script gives to a program.
type Param struct {
	Name string `json:"name"`
	// Pattern covers the whole of a value, in the syntax of package regexp.
	Pattern string `json:"pattern"`
	// MaxLength bounds a value, in bytes.
	MaxLength int `json:"max_length"`
}

// Compile returns the pattern, of which a match is the whole of a text. What
// stands in the pattern cannot undo that.
func (p Param) Compile() (*regexp.Regexp, error) {
	// Alone first: brackets that do not match could close the ones around it.
	if _, err := regexp.Compile(p.Pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + p.Pattern + `)\z`)
}

// Dash says how values that a pattern covers may begin.
type Dash int

const (
	// NoDash is for patterns that cover nothing that begins with "-".
	NoDash Dash = iota
	// WrittenDash is for those in which "-" is written where a value begins,
	// alone or among other characters one by one.
	WrittenDash
	// ImpliedDash is for those that cover it without that, as "." does.
	ImpliedDash
)

// Dash returns how values may begin that the parameter takes. A pattern with a
// mistake takes none.
func (p Param) Dash() Dash {
	parsed, err := syntax.Parse(p.Pattern, syntax.Perl)
	if err != nil {
		return NoDash
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return NoDash
	}
	return dashFrom(program, uint32(program.Start), make([]bool, len(program.Inst)))
}

// dashFrom looks at what a match may begin with that goes on at an instruction.
// Assertions are taken to hold.
func dashFrom(program *syntax.Prog, at uint32, seen []bool) Dash {
	if seen[at] {
		return NoDash
	}
	seen[at] = true
	inst := &program.Inst[at]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return max(dashFrom(program, inst.Out, seen), dashFrom(program, inst.Arg, seen))
	case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
		return dashFrom(program, inst.Out, seen)
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return ImpliedDash
	case syntax.InstRune, syntax.InstRune1:
		switch {
		case !inst.MatchRune('-'):
			return NoDash
		case isWritten(inst.Rune):
			return WrittenDash
		}
		return ImpliedDash
	}
	return NoDash
}

// isWritten reports whether a class consists of single characters: it is one
// character, or pairs of equal ones.
func isWritten(class []rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] != class[i+1] {
			return false
		}
	}
	return true
}
