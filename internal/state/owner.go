package state

import "github.com/mcpd/mcpd/identity"

// Owner is whom a record belongs to: the parts of a principal that tell it from
// all others, and the agent that its credential is bound to, empty for none.
type Owner struct {
	ID     string
	Kind   identity.Kind
	Issuer string
	Agent  string
}

// OwnerOf returns the owner that a principal is.
func OwnerOf(p identity.Principal) Owner {
	return Owner{ID: p.ID, Kind: p.Kind, Issuer: p.Issuer, Agent: p.Agent}
}

// key returns text that no other owner has.
func (o Owner) key() string {
	var e encoder
	e.owner(o)
	return string(e)
}
