// Package identity says who calls: the [Principal], which authentication has
// proved, and the [Agent], which the caller merely claims. Both are plain data
// and never change once a call has begun.
package identity

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
)

// Kind tells how a principal was proved.
type Kind string

const (
	// KindAnonymous is a caller that nothing was proved about.
	KindAnonymous Kind = "anonymous"
	// KindLocal is the operating-system user on the other end of stdio, a
	// Unix socket or the command line.
	KindLocal Kind = "local"
	// KindKey is the holder of an API key.
	KindKey Kind = "key"
	// KindToken is who an identity provider has signed a token for.
	KindToken Kind = "jwt"
	// KindCertificate is the holder of the key of a client certificate.
	KindCertificate Kind = "mtls"
)

// Principal is an authenticated caller. Only authentication makes one;
// nothing in it comes from a claim.
type Principal struct {
	ID     string         `json:"id"`
	Kind   Kind           `json:"kind"`
	Issuer string         `json:"issuer,omitempty"`
	Scopes []string       `json:"scopes"`
	Groups []string       `json:"groups"`
	Claims map[string]any `json:"claims"`
	// Agent is the id of the agent that the credential is bound to, empty when
	// it is bound to none; see [Principal.Bind].
	Agent string `json:"agent,omitempty"`
}

// Anonymous returns the principal of a caller that nothing was proved about.
func Anonymous() Principal {
	return Principal{
		ID: "anonymous", Kind: KindAnonymous,
		Scopes: []string{}, Groups: []string{}, Claims: map[string]any{},
	}
}

// AnonymousAgent is the AgentID of an agent that does not name itself.
const AnonymousAgent = "anonymous"

// MetadataEntries and MetadataBytes bound [Agent.Metadata].
const (
	MetadataEntries = 32
	MetadataBytes   = 4 << 10
)

// Agent is the RFC's AgentContext (section 10): who the caller says it is.
// Everything in it but RequestID, when the server made it, is a claim.
type Agent struct {
	// AgentID is [AnonymousAgent] when the caller claims none.
	AgentID string
	// Model is empty when the caller names none; it is null in scripts and on the wire.
	Model string
	// RequestID names the request in logs and errors. It is never empty in a call.
	RequestID string
	// Metadata holds at most [MetadataEntries] entries of [MetadataBytes] in all,
	// and is nil when there are none.
	Metadata map[string]string
	// Verified is true only when the principal's credential is bound to AgentID.
	Verified bool
}

// Source says where a request came in.
type Source struct {
	// IP is the address of the peer, empty when it has none.
	IP string
	// Listener is the configured address the request came in on, or "stdio",
	// "local" for calls in process.
	Listener string
	// Session tells the MCP session apart from all others, empty when the
	// request belongs to none. It opens nothing, as the id of the session does.
	Session string
}

// Caller is all that is known of who makes a request.
type Caller struct {
	Principal Principal `json:"principal"`
	Agent     Agent     `json:"agent"`
	Source    Source    `json:"-"`
}

// Explicit returns the caller with [Anonymous] in the place of a principal that nothing says
// anything about, and [AnonymousAgent] in that of an agent without a name: programs that
// make calls themselves may leave both out.
func (c Caller) Explicit() Caller {
	if p := &c.Principal; p.ID == "" && p.Issuer == "" && (p.Kind == "" || p.Kind == KindAnonymous) {
		c.Principal = Anonymous()
	}
	if c.Agent.AgentID == "" {
		c.Agent.AgentID = AnonymousAgent
	}
	return c
}

// ContradictionError says that a caller claims to be another agent than the one
// that its credential is bound to. It is to be refused as forbidden (403), and
// written down. It repeats neither id.
type ContradictionError struct{}

// Error says what to do.
func (*ContradictionError) Error() string {
	return "the credential is bound to another agent; claim that one, or none"
}

// Bind returns the agent that the caller is taken for: the one that the
// credential is bound to, verified, when it is bound to one, and otherwise the
// one that the caller claims, which is never verified. claimed holds what the
// caller itself has said, and nothing that was made up in its place, such as the
// name of its software. A claim that contradicts the binding is a
// [*ContradictionError].
func (p *Principal) Bind(claimed Agent) (Agent, error) {
	claimed.Verified = false
	if p.Agent == "" {
		return claimed, nil
	}
	if id := claimed.AgentID; id != "" && id != AnonymousAgent && id != p.Agent {
		return Agent{}, &ContradictionError{}
	}
	claimed.AgentID, claimed.Verified = p.Agent, true
	return claimed, nil
}

// Clone returns a caller that shares nothing with c that could be changed.
func (c Caller) Clone() Caller {
	c.Agent = c.Agent.Clone()
	c.Principal.Scopes, c.Principal.Groups = slices.Clone(c.Principal.Scopes), slices.Clone(c.Principal.Groups)
	if c.Principal.Claims != nil {
		c.Principal.Claims = CloneValue(c.Principal.Claims).(map[string]any)
	}
	return c
}

// Clone returns an agent that shares nothing with a that could be changed.
func (a Agent) Clone() Agent {
	a.Metadata = maps.Clone(a.Metadata)
	return a
}

// CloneValue returns a copy of decoded JSON that shares no map and no list with
// it, for those who may change what they are given.
func CloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		cloned := make(map[string]any, len(value))
		for key, member := range value {
			cloned[key] = CloneValue(member)
		}
		return cloned
	case []any:
		cloned := make([]any, len(value))
		for i, item := range value {
			cloned[i] = CloneValue(item)
		}
		return cloned
	case *big.Int:
		return new(big.Int).Set(value)
	default:
		return value
	}
}

// MarshalJSON encodes the agent as the RFC's AgentContext (section 10), under
// the names that scripts and hooks see: agent_id, model, request_id, metadata
// and verified. A model that is not named is null.
func (a Agent) MarshalJSON() ([]byte, error) {
	seen := struct {
		AgentID   string            `json:"agent_id"`
		Model     *string           `json:"model"`
		RequestID string            `json:"request_id"`
		Metadata  map[string]string `json:"metadata"`
		Verified  bool              `json:"verified"`
	}{AgentID: a.AgentID, RequestID: a.RequestID, Metadata: a.Metadata, Verified: a.Verified}
	if seen.AgentID == "" {
		seen.AgentID = AnonymousAgent
	}
	if a.Model != "" {
		seen.Model = &a.Model
	}
	if seen.Metadata == nil {
		seen.Metadata = map[string]string{}
	}
	return json.Marshal(seen)
}
