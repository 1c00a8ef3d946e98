package grant

import (
	"crypto/sha256"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Exec lets a script run one program, as the function exec.NAME.
type Exec struct {
	Name string `json:"name"`
	// Path is the absolute path of the program, as it is written.
	Path string `json:"path"`
	// Real is the path without links, as it was when the grant was judged. Empty
	// means that there is no program.
	ResolvedPath string `json:"real,omitempty"`
	// Argv are the arguments, without the program itself. {NAME} in one of them
	// stands for the value of that parameter.
	Argv   []string `json:"argv,omitempty"`
	Params []Param  `json:"params,omitempty"`
	// Env is the whole environment of the program.
	Env []Variable `json:"env,omitempty"`
	// Timeout is for one run; 0 means the deadline of the call alone.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxOutput bounds each of the two outputs, in bytes.
	MaxOutput int64 `json:"max_output"`
	// Concurrency is how many run at once.
	Concurrency int `json:"concurrency"`
}

// Variable is a variable of the environment of a program.
type Variable struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Param returns the parameter of that name, and false when there is none.
func (g Exec) Param(name string) (Param, bool) {
	i := slices.IndexFunc(g.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return g.Params[i], true
}

// Arguments returns what the program is told: for each of Argv one, in which
// values stand in the places of parameters as they are. Nothing in a value means
// anything.
func (g Exec) Arguments(values map[string]string) []string {
	arguments := make([]string, len(g.Argv))
	for i, written := range g.Argv {
		var b strings.Builder
		for _, piece := range ParseArgument(written) {
			if piece.Param != "" {
				b.WriteString(values[piece.Param])
			}
			b.WriteString(piece.Literal)
		}
		arguments[i] = b.String()
	}
	return arguments
}

// BeginsOption reports whether a value of a parameter could begin an argument
// that the program may take for an option: one that stands first in its
// argument, with no argument "--" before.
func (g Exec) MayBeOption(param string) bool {
	for _, written := range g.Argv {
		if written == "--" {
			return false
		}
		if pieces := ParseArgument(written); len(pieces) > 0 && pieces[0].Param == param {
			return true
		}
	}
	return false
}

// Piece is a part of an argument: exactly one of its members is set.
type ArgumentPart struct{ Literal, Param string }

// Pieces returns the parts of an argument. Braces around anything else than a
// name, as in "@{0}" or "{}", stand for themselves.
func ParseArgument(argument string) (pieces []ArgumentPart) {
	literal := 0
	for at := 0; at < len(argument); at++ {
		if argument[at] != '{' {
			continue
		}
		length := strings.IndexByte(argument[at:], '}')
		if length < 0 || !isParamName(argument[at+1:at+length]) {
			continue
		}
		if at > literal {
			pieces = append(pieces, ArgumentPart{Literal: argument[literal:at]})
		}
		pieces = append(pieces, ArgumentPart{Param: argument[at+1 : at+length]})
		literal = at + length + 1
		at = literal - 1
	}
	if literal < len(argument) {
		pieces = append(pieces, ArgumentPart{Literal: argument[literal:]})
	}
	return pieces
}

func isParamName(s string) bool {
	const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.Trim(s, word) == ""
}

// WithSecrets returns the grant with the secrets that it names replaced by those
// that keys names for them. It returns g itself when it names none.
func (g Exec) WithSecrets(keys map[string]string) Exec {
	for i := range g.Env {
		value, changed := g.Env[i].Value.withSecrets(keys)
		if !changed {
			continue
		}
		g.Env = slices.Clone(g.Env)
		g.Env[i].Value = value
	}
	return g
}

// Hash returns a hash of everything that the value says.
func (g Exec) Hash() [sha256.Size]byte { return hash(g) }

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
	DashNever Dash = iota
	// WrittenDash is for those in which "-" is written where a value begins,
	// alone or among other characters one by one.
	DashExplicit
	// ImpliedDash is for those that cover it without that, as "." does.
	DashImplied
)

// Dash returns how values may begin that the parameter takes. A pattern with a
// mistake takes none.
func (p Param) Dash() Dash {
	parsed, err := syntax.Parse(p.Pattern, syntax.Perl)
	if err != nil {
		return DashNever
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return DashNever
	}
	return dashFrom(program, uint32(program.Start), make([]bool, len(program.Inst)))
}

// dashFrom looks at what a match may begin with that goes on at an instruction.
// Assertions are taken to hold.
func dashFrom(program *syntax.Prog, at uint32, seen []bool) Dash {
	if seen[at] {
		return DashNever
	}
	seen[at] = true
	inst := &program.Inst[at]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return max(dashFrom(program, inst.Out, seen), dashFrom(program, inst.Arg, seen))
	case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
		return dashFrom(program, inst.Out, seen)
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return DashImplied
	case syntax.InstRune, syntax.InstRune1:
		switch {
		case !inst.MatchRune('-'):
			return DashNever
		case isSingleCharacters(inst.Rune):
			return DashExplicit
		}
		return DashImplied
	}
	return DashNever
}

// isWritten reports whether a class consists of single characters: it is one
// character, or pairs of equal ones.
func isSingleCharacters(class []rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] != class[i+1] {
			return false
		}
	}
	return true
}
