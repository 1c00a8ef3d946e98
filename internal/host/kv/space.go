package kv

import (
	"encoding/binary"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Runner is who runs: a definition, for a caller.
type Runner struct {
	// Kind and Name are those of the definition, such as "tool" and its name.
	Kind, Name string
	// Caller is the zero Caller of what runs for nobody.
	Caller identity.Caller
}

// SpaceOf returns the name of the space that a grant gives to who runs. No two
// of them have one name. The error is a [*scripting.HostError]: the grant needs
// what the call lacks.
func SpaceOf(g grant.KV, r Runner) (string, error) {
	switch g.Scope {
	case grant.ScopeTool:
		return join(g.Scope, g.Name, r.Kind, r.Name), nil
	case grant.ScopeServer:
		return join(g.Scope, g.Name), nil
	case grant.ScopeSession:
		if r.Caller.Source.Session == "" {
			return "", refuse(scripting.Invalid, "the values belong to a session, and this call has none")
		}
		return join(g.Scope, g.Name, r.Caller.Source.Session), nil
	case grant.ScopePrincipal:
		p := r.Caller.Principal
		if p.ID == "" && p.Kind == "" {
			return "", refuse(scripting.Invalid, "the values belong to a principal, and this call has none")
		}
		return join(g.Scope, g.Name, p.ID, string(p.Kind), p.Issuer), nil
	}
	return "", refuse(scripting.NotGranted, "the grant has no scope")
}

// join returns text that no other parts make: each stands behind its length.
func join(parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return string(text)
}

func refuse(code, message string) error { return &scripting.HostError{Code: code, Message: message} }
