package grant

import (
	"crypto/sha256"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Exec permits a script to run one program, as the function exec.NAME.
type Exec struct {
	Name string `json:"name"`
	// Path is the absolute path of the program, as written.
	Path string `json:"path"`
	// ResolvedPath is the path without symbolic links, when the grant was checked. It is empty
	// if there is no program.
	ResolvedPath string `json:"real,omitempty"`
	// Argv are the arguments without the program. {NAME} is replaced by the value of the
	// parameter.
	Argv   []string `json:"argv,omitempty"`
	Params []Param  `json:"params,omitempty"`
	// Env is the complete environment of the program.
	Env []Variable `json:"env,omitempty"`
	// Timeout bounds one run; 0 means only the deadline of the call.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxOutput bounds stdout and stderr each, in bytes.
	MaxOutput int64 `json:"max_output"`
	// Concurrency is the maximum number of concurrent runs.
	Concurrency int `json:"concurrency"`
}

// Variable is an environment variable of a program.
type Variable struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Param returns the parameter of that name, and false if there is none.
func (e Exec) Param(name string) (Param, bool) {
	i := slices.IndexFunc(e.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return e.Params[i], true
}

// Arguments returns the arguments of the program: Argv with the parameters replaced by values.
// Values are inserted verbatim and not interpreted.
func (e Exec) Arguments(values map[string]string) []string {
	arguments := make([]string, len(e.Argv))
	for i, written := range e.Argv {
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

// MayBeOption reports whether a value of a parameter may be taken for an option: it starts an
// argument, and no argument "--" precedes it.
func (e Exec) MayBeOption(param string) bool {
	for _, written := range e.Argv {
		if written == "--" {
			return false
		}
		if pieces := ParseArgument(written); len(pieces) > 0 && pieces[0].Param == param {
			return true
		}
	}
	return false
}

// ArgumentPart is a part of an argument: exactly one of its fields is set.
type ArgumentPart struct{ Literal, Param string }

// ParseArgument returns the parts of an argument. Braces around anything but a name, as in
// "@{0}" or "{}", are literal.
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

// WithSecrets returns the grant with the names of secrets replaced by keys. It returns e itself
// if there are none.
func (e Exec) WithSecrets(keys map[string]string) Exec {
	for i := range e.Env {
		value, changed := e.Env[i].Value.withSecrets(keys)
		if !changed {
			continue
		}
		e.Env = slices.Clone(e.Env)
		e.Env[i].Value = value
	}
	return e
}

// Hash returns a hash of the whole grant.
func (e Exec) Hash() [sha256.Size]byte { return hash(e) }

// Param is a value that a script passes to a program.
type Param struct {
	Name string `json:"name"`
	// Pattern must match the whole value, in the syntax of package regexp.
	Pattern string `json:"pattern"`
	// MaxLength bounds a value, in bytes.
	MaxLength int `json:"max_length"`
}

// Compile returns the pattern, anchored so that it only matches a whole value. The pattern
// cannot break out of the anchors.
func (p Param) Compile() (*regexp.Regexp, error) {
	// Compile it alone first: unbalanced parentheses could close the anchoring group.
	if _, err := regexp.Compile(p.Pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + p.Pattern + `)\z`)
}

// Dash says whether matching values may start with "-".
type Dash int

const (
	// DashNever means that no value starts with "-".
	DashNever Dash = iota
	// DashExplicit means that the pattern lists "-" explicitly at its start, alone or in a
	// class of single characters.
	DashExplicit
	// DashImplied means that the pattern allows "-" implicitly, such as by ".".
	DashImplied
)

// Dash reports whether values of the parameter may start with "-". An invalid pattern matches
// no values.
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

// dashFrom reports how a match that continues at an instruction may start. It assumes that
// assertions hold.
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

// isSingleCharacters reports whether a class lists only single characters, not ranges.
func isSingleCharacters(class []rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] != class[i+1] {
			return false
		}
	}
	return true
}
