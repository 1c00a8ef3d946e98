package execs

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Parse returns the arguments of the program, without its name, for the payload
// {"params":{NAME: text}}. It rejects values outside of the grant as INVALID or NOT_GRANTED;
// messages repeat only names. Mocks use it, so that a test cannot pass with a call that would
// be rejected.
func (p Program) Parse(payload []byte) ([]string, error) {
	var in struct {
		Params map[string]string `json:"params"`
	}
	if err := json.Unmarshal(payload, &in); err != nil || !utf8.Valid(payload) {
		return nil, newHostError(scripting.Invalid, "exec.%s takes an object of strings", p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Params)) {
		if _, ok := p.Param(name); !ok {
			return nil, newHostError(scripting.NotGranted, "exec.%s has no parameter %s; it has %s", p.Name, quoteName(name), names(p.Params))
		}
	}
	for _, declared := range p.params {
		value, given := in.Params[declared.Name]
		if !given {
			return nil, newHostError(scripting.Invalid, "exec.%s: %s is missing", p.Name, declared.Name)
		}
		if err := declared.check(p.Name, value); err != nil {
			return nil, err
		}
	}
	return p.Arguments(in.Params), nil
}

func (p param) check(program, value string) error {
	switch {
	case len(value) > p.MaxLength:
		return newHostError(scripting.TooLarge, "exec.%s: %s has at most %d bytes", program, p.Name, p.MaxLength)
	case value == "", strings.ContainsRune(value, 0):
		return newHostError(scripting.Invalid, "exec.%s: %s must be a non-empty string without NUL", program, p.Name)
	case p.pattern == nil || !p.pattern.MatchString(value):
		return newHostError(scripting.NotGranted, "exec.%s: %s does not match its pattern", program, p.Name)
	case value[0] == '-' && p.mayBeOption:
		return newHostError(scripting.NotGranted, "exec.%s: %s would be an option for the program", program, p.Name)
	}
	return nil
}

func names(params []grant.Param) string {
	all := make([]string, len(params))
	for i, p := range params {
		all[i] = p.Name
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// maxQuotedName bounds names that a message repeats, in bytes. Longer ones are not repeated: a
// redactor would not recognize part of a secret.
const maxQuotedName = 64

func quoteName(name string) string {
	if len(name) > maxQuotedName {
		return fmt.Sprintf("of %d bytes", len(name))
	}
	return fmt.Sprintf("%q", name)
}

func newHostError(code, format string, args ...any) error {
	return &scripting.HostError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Program is a compiled grant. It is immutable and safe for concurrent use.
type Program struct {
	grant.Exec
	params []param
}

// param is a compiled parameter.
type param struct {
	grant.Param
	// pattern is nil if it is invalid; then it matches nothing.
	pattern *regexp.Regexp
	// mayBeOption reports whether a value with a leading "-" would be an option.
	mayBeOption bool
}

// Compile compiles a grant. A parameter with an invalid pattern accepts no value.
func Compile(g grant.Exec) Program {
	p := Program{Exec: g, params: make([]param, len(g.Params))}
	for i, declared := range g.Params {
		pattern, _ := declared.Compile()
		p.params[i] = param{declared, pattern, g.MayBeOption(declared.Name) && declared.Dash() != grant.DashExplicit}
	}
	return p
}

// WithSecrets returns the program with secret names replaced by keys (see
// [grant.Exec.WithSecrets]).
func (p Program) WithSecrets(keys map[string]string) Program {
	p.Exec = p.Exec.WithSecrets(keys)
	return p
}
