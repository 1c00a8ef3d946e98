package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// Catalog is everything that a server offers at one moment. It is immutable.
type Catalog struct {
	// Revision is a hash of everything that the catalog is made of. The values
	// of secrets are not part of it.
	Revision string
	// Server, Listen, Reload and Limits are the blocks of the operator's file.
	Server hclfile.Server
	Listen hclfile.Listen
	Reload hclfile.Reload
	Limits hclfile.Limits
	// Entries are in bytewise order of the names of their items.
	Entries []*Entry
	// Hooks are all hooks, the operator's first.
	Hooks []*Hook
	// Policies counts all policies.
	Policies int
	// DenyByDefault says that a call is denied unless a policy allows it.
	DenyByDefault bool
	Secrets       []secrets.Def
	// SecretKeys maps the name of a secret to the key of its definition.
	SecretKeys map[string]string
	Tests      []hclfile.Test

	byName map[string]*Entry
}

// Entry is an item with the policies and hooks that this catalog gives it.
type Entry struct {
	*Item
	Rules []Policy
	Hooks []*Hook
}

// Entry returns the entry of that name, or nil. A nil catalog has none.
func (c *Catalog) Entry(name string) *Entry {
	if c == nil {
		return nil
	}
	return c.byName[name]
}

// patterns are names in which * matches any run of characters; nil are all names.
type patterns []hclfile.Name

// Wants reports whether the hook wants to know of a phase of calls of a name.
func (h *Hook) Wants(phase, name string) bool {
	return slices.Contains(h.Phases, phase) && hclfile.Covers(h.names, name)
}
