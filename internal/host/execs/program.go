package execs

import (
	"regexp"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// Program is a grant that is ready for runs. It does not change, and is safe for
// concurrent use.
type Program struct {
	grant.Exec
	// params are the parameters of the grant, in their order.
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
		p.params[i] = param{declared, pattern, g.BeginsOption(declared.Name) && declared.Dash() != grant.WrittenDash}
	}
	return p
}

// WithSecrets returns the program of the grant in which keys name the secrets
// (see [grant.Exec.WithSecrets]).
func (p Program) WithSecrets(keys map[string]string) Program {
	p.Exec = p.Exec.WithSecrets(keys)
	return p
}
