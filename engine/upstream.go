package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/hclfile"
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

// newUpstreams returns the connections of the server to others.
func (s *Server) newUpstreams() *federation.Federation {
	o := federation.Options{
		Version: s.options.Version, Transport: s.brokers.Egress.Stream, Value: s.brokers.Programs.Text,
		Environment: func() ([]string, int) { return federation.Environment(s.options.LookupEnv) }, Propagate: s.observed.propagate,
		Supervisor: s.options.Supervisor, Logger: s.options.Logger,
	}
	pins := federation.Pins{Path: s.options.LockPath, Fixed: s.options.LockFixed, Offline: s.options.Offline, Eager: s.options.Eager, Audit: s.Audit, Logger: s.options.Logger}
	return federation.New(o, pins, s.brokers.Secrets, s.relist, s.audience.Tell)
}

// Follow has the upstream server of a resource tell when it changes, which those hear of who
// [Server.Watch], until leave is called.
func (s *Server) Follow(uri string) (leave func()) { return s.upstreams.Follow(uri) }

// relist brings in what upstream servers offer now. A mistake in the files keeps what is new
// out until that is mended, which brings it in: files that were refused are not excused by
// what servers do. It returns how long that took once no other load was under way: the first
// one waits for servers.
func (s *Server) relist() time.Duration {
	s.loading.Lock()
	defer s.loading.Unlock()
	began := time.Now()
	if s.current.Load() != nil {
		refused := !s.last.ok // which loads alone write
		_, _ = s.reload(context.Background(), catalog.Change{Upstreams: true, Refused: refused, Start: refused && s.last.starts})
	}
	return time.Since(began)
}

// withdraw has what serves be without what upstream servers offer no longer as it was, or
// nobody has accepted. Its caller holds loading.
func (s *Server) withdraw(before *Snapshot, began time.Time) {
	left := s.builder.Withdraw()
	s.upstreams.Withdrawn()
	if left.Revision == before.Revision() {
		return
	}
	now := newSnapshot(left, before, s.options.Now())
	s.serve(now)
	s.announce(before, false, nil, s.options.Now().Sub(began))
}
