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

// Parse returns what the program is told, without its own name, for the payload
// {"params":{NAME: text}}. It refuses what the grant does not cover, as INVALID or
// NOT_GRANTED, with messages that repeat names alone. Mocks ask it, so that a
// test does not pass with what could never be run.
func (p Program) Parse(payload []byte) ([]string, error) {
	var in struct {
		Params map[string]string `json:"params"`
	}
	if err := json.Unmarshal(payload, &in); err != nil || !utf8.Valid(payload) {
		return nil, fault(scripting.Invalid, "exec.%s takes an object of texts", p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Params)) {
		if _, ok := p.Param(name); !ok {
			return nil, fault(scripting.NotGranted, "exec.%s has no parameter %s; it has %s", p.Name, shown(name), names(p.Params))
		}
	}
	for _, declared := range p.params {
		value, given := in.Params[declared.Name]
		if !given {
			return nil, fault(scripting.Invalid, "exec.%s: %s is missing", p.Name, declared.Name)
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
		return fault(scripting.TooLarge, "exec.%s: %s has at most %d bytes", program, p.Name, p.MaxLength)
	case value == "", strings.ContainsRune(value, 0):
		return fault(scripting.Invalid, "exec.%s: %s must be text, which holds something and no NUL", program, p.Name)
	case p.pattern == nil || !p.pattern.MatchString(value):
		return fault(scripting.NotGranted, "exec.%s: %s does not match its pattern", program, p.Name)
	case value[0] == '-' && p.mayBeOption:
		return fault(scripting.NotGranted, "exec.%s: %s would be an option of the program", program, p.Name)
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

// maxShown bounds the names that a message repeats, in bytes. Of longer ones it repeats
// nothing: a part of a value that is hidden would not be known.
const maxShown = 64

func shown(name string) string {
	if len(name) > maxShown {
		return fmt.Sprintf("of %d bytes", len(name))
	}
	return fmt.Sprintf("%q", name)
}

func fault(code, format string, args ...any) error {
	return &scripting.HostError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Program is a grant that is ready for runs. It does not change, and is safe for
// concurrent use.
type Program struct {
	grant.Exec
	params []param
}

// param is a parameter with what is the same for all of its values.
type param struct {
	grant.Param
	// pattern is nil for one with a mistake, which covers nothing.
	pattern *regexp.Regexp
	// mayBeOption says that a value which begins with "-" would be an option.
	mayBeOption bool
}

// Compile makes a grant ready. It takes what a file may say; a parameter whose
// pattern has a mistake takes no value.
func Compile(g grant.Exec) Program {
	p := Program{Exec: g, params: make([]param, len(g.Params))}
	for i, declared := range g.Params {
		pattern, _ := declared.Compile()
		p.params[i] = param{declared, pattern, g.MayBeOption(declared.Name) && declared.Dash() != grant.DashExplicit}
	}
	return p
}

// WithSecrets returns the program of the grant in which keys name the secrets
// (see [grant.Exec.WithSecrets]).
func (p Program) WithSecrets(keys map[string]string) Program {
	p.Exec = p.Exec.WithSecrets(keys)
	return p
}
