package execs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Parse returns what a program is told, without its own name, for the payload
// {"params":{NAME: text}}. It refuses what the grant does not cover, as INVALID or
// NOT_GRANTED, with messages that repeat names alone. Mocks ask it, so that a
// test does not pass with what could never be run.
func Parse(g grant.Exec, payload []byte) ([]string, error) {
	var in struct {
		Params map[string]string `json:"params"`
	}
	if err := json.Unmarshal(payload, &in); err != nil || !utf8.Valid(payload) {
		return nil, fault(scripting.Invalid, "exec.%s takes an object of texts", g.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Params)) {
		if _, ok := g.Param(name); !ok {
			return nil, fault(scripting.NotGranted, "exec.%s has no parameter %s; it has %s", g.Name, shown(name), names(g))
		}
	}
	for _, p := range g.Params {
		value, given := in.Params[p.Name]
		if !given {
			return nil, fault(scripting.Invalid, "exec.%s: %s is missing", g.Name, p.Name)
		}
		if err := check(g, p, value); err != nil {
			return nil, err
		}
	}
	return g.Arguments(in.Params), nil
}

func check(g grant.Exec, p grant.Param, value string) error {
	pattern, err := p.Compile()
	switch {
	case len(value) > p.MaxLength:
		return fault(scripting.TooLarge, "exec.%s: %s has at most %d bytes", g.Name, p.Name, p.MaxLength)
	case value == "", strings.ContainsRune(value, 0):
		return fault(scripting.Invalid, "exec.%s: %s must be text, which holds something and no NUL", g.Name, p.Name)
	case err != nil || !pattern.MatchString(value):
		return fault(scripting.NotGranted, "exec.%s: %s does not match its pattern", g.Name, p.Name)
	case value[0] == '-' && g.BeginsOption(p.Name) && p.Dash() != grant.WrittenDash:
		return fault(scripting.NotGranted, "exec.%s: %s would be an option of the program", g.Name, p.Name)
	}
	return nil
}

func names(g grant.Exec) string {
	all := make([]string, len(g.Params))
	for i, p := range g.Params {
		all[i] = p.Name
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// maxShown bounds how much of a name a message repeats.
const maxShown = 64

func shown(name string) string {
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func fault(code, format string, args ...any) error {
	return &scripting.HostError{Code: code, Message: fmt.Sprintf(format, args...)}
}
