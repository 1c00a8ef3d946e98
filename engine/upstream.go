package engine

import (
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Upstream is an MCP server whose tools are offered here without an upstream block.
type Upstream struct{ block hclfile.Upstream }

// NewUpstream returns the upstream of a URL. What it offers has names that begin with its
// own and "_". origin is where it is named, for messages.
func NewUpstream(name, url, origin string) (Upstream, error) {
	block, err := hclfile.NewUpstream(name, url, origin)
	if err != nil {
		return Upstream{}, fmt.Errorf("%s: upstream %q: %w", origin, name, err)
	}
	return Upstream{block}, nil
}

// WithoutPrefix returns the server as one whose tools and prompts have the names here that
// it gives them itself.
func (u Upstream) WithoutPrefix() Upstream { return Upstream{u.block.WithoutPrefix()} }

// UpstreamStatus is how an upstream server is.
type UpstreamStatus = federation.State

// Drift is how the tools of an upstream differ from what was accepted of them.
type Drift = federation.Drift

// Drifts returns that of each upstream whose tools are pinned, in the order of their
// blocks. The server is loaded.
func (s *Server) Drifts() []Drift { return s.upstreams.Drifts(s.current.Load().catalog) }

// newUpstreams returns the connections of the server to others, by the extension of a program
// that has it.
func (s *Server) newUpstreams(x extension.Federation) federation.Federation {
	if x == nil {
		return federation.None()
	}
	o := s.options
	return x.Federate(federation.Options{
		Version: o.Version, Brokers: s.brokers, LookupEnv: o.LookupEnv, Propagate: s.observed.propagate, Supervisor: o.Supervisor,
		Pins:   federation.Pins{Path: o.LockPath, Fixed: o.LockFixed, Offline: o.Offline, Eager: o.Eager, Audit: s.Audit},
		Relist: s.relist, Update: s.audience.Tell, Logger: o.Logger,
	})
}

// Follow has the upstream server of a resource tell when it changes, which those hear of who
// [Server.Watch], until leave is called.
func (s *Server) Follow(uri string) (leave func()) { return s.upstreams.Follow(uri) }

// relist brings in what upstream servers offer now. It returns how long that took once no
// other load was under way: the first one waits for servers.
func (s *Server) relist() time.Duration {
	s.loading.Lock()
	defer s.loading.Unlock()
	began := time.Now()
	if s.current.Load() != nil {
		told := s.last.problems // which loads alone write
		s.warn(s.refresh(), told)
	}
	return time.Since(began)
}
