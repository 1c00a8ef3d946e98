package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/recent"
	"github.com/mcpd/mcpd/serve"
)

// consoleListener is the listener in the source of a call from the console.
const consoleListener = "console"

// callerAs returns the caller of a call from the console: the operator, or another principal.
func callerAs(operator identity.Principal, as control.As) (identity.Caller, error) {
	c := identity.Caller{Principal: operator, Agent: identity.Agent{AgentID: "mcpd-console"}, Source: identity.Source{Listener: consoleListener}}
	if as.Principal != nil {
		c.Principal, c.Agent = *as.Principal, identity.Agent{AgentID: identity.AnonymousAgent}
		if err := checkPrincipal(c.Principal); err != nil {
			return c, err
		}
		c = c.Explicit()
		p := &c.Principal
		p.Scopes, p.Groups = append([]string{}, p.Scopes...), append([]string{}, p.Groups...)
		if p.Claims == nil {
			p.Claims = map[string]any{}
		}
	}
	if as.Agent != nil {
		size := 0
		for name, value := range as.Agent.Metadata {
			size += len(name) + len(value)
		}
		if len(as.Agent.Metadata) > identity.MetadataEntries || size > identity.MetadataBytes {
			return c, fmt.Errorf("the metadata of an agent has at most %d entries and %d bytes", identity.MetadataEntries, identity.MetadataBytes)
		}
		c.Agent = identity.Agent{AgentID: as.Agent.AgentID, Model: as.Agent.Model, RequestID: as.Agent.RequestID, Metadata: as.Agent.Metadata}
		c = c.Explicit()
	}
	var err error
	c.Agent, err = c.Principal.Bind(c.Agent)
	return c, err
}

// principalKinds are the kinds of principals.
var principalKinds = []string{
	string(identity.KindAnonymous), string(identity.KindLocal), string(identity.KindKey), string(identity.KindToken), string(identity.KindCertificate),
}

// checkPrincipal rejects a principal that no authentication returns.
func checkPrincipal(p identity.Principal) error {
	switch {
	case !slices.Contains(principalKinds, string(p.Kind)):
		return fmt.Errorf("unknown kind %.40q of a principal; use anonymous, local, key, jwt or mtls", string(p.Kind))
	case (p.Kind == identity.KindAnonymous) != (p.ID == identity.Anonymous().ID):
		return errors.New(`a principal has the kind anonymous if its id is "anonymous", and only then`)
	case p.ID == "":
		return errors.New("a principal needs an id")
	}
	return nil
}

// operator returns the local user who runs the server.
func (o *runningServer) operator() identity.Principal {
	return serve.LocalPrincipal(o.env.process.uid, o.env.process.username)
}

// principalOfCall returns the principal of a recent call, without its claims.
func principalOfCall(c *recent.Call) identity.Principal {
	return identity.Principal{ID: c.Principal, Kind: identity.Kind(c.AuthKind), Issuer: c.Issuer, Scopes: c.Scopes, Groups: c.Groups}
}

// ownerOf returns the principal that owns a task.
func ownerOf(t control.TaskName) identity.Principal {
	return identity.Principal{ID: t.Principal, Kind: identity.Kind(t.AuthKind), Issuer: t.Issuer, Agent: t.Agent}
}

// samePrincipal reports whether two principals have the same identity and rights.
func samePrincipal(a, b identity.Principal) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Issuer == b.Issuer && slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Groups, b.Groups)
}
