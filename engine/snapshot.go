package engine

import (
	"slices"
	"time"

	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// defaultConcurrency is how many calls run at once unless limits says otherwise.
const defaultConcurrency = 256

const maxToolName = 64 // in bytes

// Snapshot is everything that serves calls at one moment: tools, policies,
// hooks and what the server says of itself. It is immutable but for what it
// remembers about its own lists, and owns nothing that needs closing.
type Snapshot struct {
	revision string
	since    time.Time
	info     Info
	entries  map[string]*entry
	// order holds the entries in the order in which they are listed.
	order         []*entry
	hooks         []*hook
	policyCount   int
	denyByDefault bool
	concurrency   int
	requireTests  bool
	secrets       []secrets.Def
	secretKeys    map[string]string // secret name → key of its definition
	listen        Listen
	watch         bool
	tests         []hclfile.Test
	lists         lists
}

// entry is a tool with the policies and hooks that this snapshot gives it.
type entry struct {
	tool     *Tool
	policies []boundPolicy
	hooks    []*hook
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
func (s *Snapshot) Revision() string { return s.revision }

// Info returns what the server says of itself.
func (s *Snapshot) Info() Info { return s.info }

// Listen returns what the operator's file says of the address to serve on.
func (s *Snapshot) Listen() Listen {
	l := s.listen
	l.Hosts, l.Origins = slices.Clone(l.Hosts), slices.Clone(l.Origins)
	return l
}

// Watch reports whether the operator's file lets changed files be loaded by themselves.
func (s *Snapshot) Watch() bool { return s.watch }

// Tools returns all tools, in bytewise order of their names.
func (s *Snapshot) Tools() []*Tool {
	tools := make([]*Tool, len(s.order))
	for i, e := range s.order {
		tools[i] = e.tool
	}
	return tools
}

// Tool returns the tool with a name, or nil.
func (s *Snapshot) Tool(name string) *Tool {
	if e := s.entries[name]; e != nil {
		return e.tool
	}
	return nil
}
