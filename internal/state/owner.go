package state

import "github.com/mcpd/mcpd/identity"

// Owner is whom a record belongs to: the parts of a principal that tell it from
// all others.
type Owner struct {
	ID     string
	Kind   identity.Kind
	Issuer string
}

// OwnerOf returns the owner that a principal is.
func OwnerOf(p identity.Principal) Owner { return Owner{ID: p.ID, Kind: p.Kind, Issuer: p.Issuer} }

// key returns text that no other owner has.
func (o Owner) key() string {
	var e encoder
	e.owner(o)
	return string(e)
}
