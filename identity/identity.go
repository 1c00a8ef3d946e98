// Package identity describes the caller of a request.
//
// A [Caller] has three parts: a [Principal], which authentication has verified, an [Agent], which the
// caller claims, and the [Source] of the request. Decide about access by the principal:
//
//	caller, _ := engine.CallerFromContext(ctx)
//	p := caller.Principal
//	if p.Kind != identity.KindToken || p.Issuer != "https://login.example.com" {
//		return errors.New("sign in first")
//	}
//
// Several issuers may use the same ID, so compare the Kind and the Issuer too. An agent is verified
// only if the credential of the principal is bound to it: see [Principal.Bind].
//
// All types are plain data, and immutable during a call.
package identity

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
)

// Kind is the authentication method of a principal.
type Kind string

const (
	// KindAnonymous is an unauthenticated caller.
	KindAnonymous Kind = "anonymous"
	// KindLocal is the operating-system user at the other end of stdio or a Unix socket, or on the
	// command line.
	KindLocal Kind = "local"
	// KindKey is the holder of an API key.
	KindKey Kind = "key"
	// KindToken is the subject of a token that an identity provider has signed.
	KindToken Kind = "jwt"
	// KindCertificate is the holder of the private key of a client certificate.
	KindCertificate Kind = "mtls"
)

// Principal is an authenticated caller. Only authentication creates one; no field comes from a
// claim of the caller.
type Principal struct {
	// ID identifies the principal among the principals of its Kind and Issuer: the principal of an
	// API key, the subject of a token, a name in a certificate, or the number of a user. Different
	// issuers may use the same ID. It is "anonymous" for an unauthenticated caller.
	ID string `json:"id"`
	// Kind is the method that authenticated the caller.
	Kind Kind `json:"kind"`
	// Issuer identifies who vouches for the ID: the URL of the identity provider of a token, or the
	// distinguished name of the issuer of a certificate. It is empty for any other Kind.
	Issuer string `json:"issuer,omitempty"`
	// Scopes are the permissions of the credential, including implied ones. They come from an API
	// key or a token.
	Scopes []string `json:"scopes"`
	// Groups are the groups of the principal. They come from an API key or a token.
	Groups []string `json:"groups"`
	// Claims are other verified facts as decoded JSON, such as the claims of a token, or the serial
	// number of a certificate. Do not modify them.
	Claims map[string]any `json:"claims"`
	// Agent is the agent id that the credential is bound to; empty if it is not bound. See
	// [Principal.Bind].
	Agent string `json:"agent,omitempty"`
}

// Anonymous returns the principal of an unauthenticated caller.
func Anonymous() Principal {
	return Principal{
		ID: "anonymous", Kind: KindAnonymous,
		Scopes: []string{}, Groups: []string{}, Claims: map[string]any{},
	}
}

// AnonymousAgent is the AgentID of a caller that claims none.
const AnonymousAgent = "anonymous"

// MetadataEntries and MetadataBytes bound [Agent.Metadata].
const (
	MetadataEntries = 32
	MetadataBytes   = 4 << 10
)

// Agent is the AgentContext of RFC-0001 (section 10). Its fields are claims of the caller, except
// Verified and a RequestID that the server generated.
type Agent struct {
	// AgentID is [AnonymousAgent] if the caller claims none.
	AgentID string
	// Model is empty if the caller names none. Scripts and the wire then have null.
	Model string
	// RequestID identifies the request in logs and errors. It is never empty in a call.
	RequestID string
	// Metadata has at most [MetadataEntries] entries and [MetadataBytes] bytes; nil if there are
	// none.
	Metadata map[string]string
	// Verified is true only if the principal's credential is bound to AgentID.
	Verified bool
}

// Source is the origin of a request.
type Source struct {
	// IP is the address of the peer; empty if it has none.
	IP string
	// Listener is the configured address of the listener, "stdio", or "local" for calls in process.
	Listener string
	// Session identifies the MCP session; empty if the request has none. Unlike the session id, it
	// grants no access.
	Session string
}

// Caller combines the principal, the agent and the source of a request.
type Caller struct {
	// Principal is the authenticated caller.
	Principal Principal `json:"principal"`
	// Agent is what the caller claims about itself.
	Agent Agent `json:"agent"`
	// Source is where the request comes from. It is not part of its JSON.
	Source Source `json:"-"`
}

// Explicit returns the caller with defaults: an unset principal becomes [Anonymous], and an unset
// agent id [AnonymousAgent]. Programs that make calls themselves may omit both.
func (c Caller) Explicit() Caller {
	if p := &c.Principal; p.ID == "" && p.Issuer == "" && (p.Kind == "" || p.Kind == KindAnonymous) {
		c.Principal = Anonymous()
	}
	if c.Agent.AgentID == "" {
		c.Agent.AgentID = AnonymousAgent
	}
	return c
}

// ContradictionError reports that a caller claims another agent than its credential is bound to.
// Reject the request as forbidden (403) and audit it. The message contains neither id.
type ContradictionError struct{}

// Error returns the message with the fix.
func (*ContradictionError) Error() string {
	return "the credential is bound to another agent; claim that one, or none"
}

// Bind returns the effective agent. If the credential is bound to an agent, that is the agent, and
// it is verified; otherwise the claimed one is, unverified. Claimed must hold only what the caller
// sent, without derived values such as the name of its software. A claim that contradicts the
// binding is a [*ContradictionError].
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

// Clone returns a deep copy.
func (c Caller) Clone() Caller {
	c.Agent = c.Agent.Clone()
	c.Principal.Scopes, c.Principal.Groups = slices.Clone(c.Principal.Scopes), slices.Clone(c.Principal.Groups)
	if c.Principal.Claims != nil {
		c.Principal.Claims = CloneValue(c.Principal.Claims).(map[string]any)
	}
	return c
}

// Clone returns a deep copy.
func (a Agent) Clone() Agent {
	a.Metadata = maps.Clone(a.Metadata)
	return a
}

// CloneValue returns a deep copy of decoded JSON, for callers that modify it.
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

// MarshalJSON encodes the agent as the AgentContext of RFC-0001 (section 10), with the names that scripts
// and hooks use: agent_id, model, request_id, metadata and verified. An unset model is null.
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
