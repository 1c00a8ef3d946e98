package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpd/mcpd/internal/catalog"
)

// defaultConcurrency is how many calls run at once unless limits says otherwise.
const defaultConcurrency = 256

const maxToolName = 64 // in bytes

// Snapshot is everything that serves calls at one moment: tools, policies,
// hooks and what the server says of itself. It is immutable but for what it
// remembers about its own lists, and owns nothing that needs closing.
type Snapshot struct {
	catalog *catalog.Catalog
	since   time.Time
	tools   []*Tool // of the entries, in their order
	lists   lists
}

// newSnapshot returns a snapshot of a catalog. Tools whose items were in the
// snapshot before, which may be nil, are the same.
func newSnapshot(c *catalog.Catalog, before *Snapshot, now time.Time) *Snapshot {
	known := map[*catalog.Item]*Tool{}
	if before != nil {
		for _, tool := range before.tools {
			known[tool.item] = tool
		}
	}
	s := &Snapshot{catalog: c, since: now, tools: make([]*Tool, len(c.Entries))}
	for i, e := range c.Entries {
		if s.tools[i] = known[e.Item]; s.tools[i] == nil {
			s.tools[i] = &Tool{item: e.Item}
		}
	}
	return s
}

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Description, Instructions string
}

// Listen is what the operator's file says of the address to serve on.
type Listen struct {
	// Address is host:port, empty when the file does not say.
	Address string
	// Hosts are names that requests may carry beside the loopback ones, and
	// Origins the browser origins that may send requests.
	Hosts, Origins []string
}

// Revision is the content hash of everything that the snapshot is made of.
func (s *Snapshot) Revision() string { return s.catalog.Revision }

// Info returns what the server says of itself.
func (s *Snapshot) Info() Info {
	said := s.catalog.Server
	return Info{Name: said.Name, Title: said.Title, Version: said.Version, Description: said.Description, Instructions: said.Instructions}
}

// Listen returns what the operator's file says of the address to serve on.
func (s *Snapshot) Listen() Listen {
	l := s.catalog.Listen
	return Listen{Address: l.Address, Hosts: slices.Clone(l.Hosts), Origins: slices.Clone(l.Origins)}
}

// Watch reports whether the operator's file lets changed files be loaded by themselves.
func (s *Snapshot) Watch() bool { return s.catalog.Reload.Watch }

// Tools returns all tools, in bytewise order of their names.
func (s *Snapshot) Tools() []*Tool { return slices.Clone(s.tools) }

// Tool returns the tool with a name, or nil.
func (s *Snapshot) Tool(name string) *Tool {
	i := slices.IndexFunc(s.tools, func(t *Tool) bool { return t.item.Name == name })
	if i < 0 {
		return nil
	}
	return s.tools[i]
}

// concurrency is how many calls may run at once.
func (s *Snapshot) concurrency() int { return cmp.Or(s.catalog.Limits.Concurrency, defaultConcurrency) }
