package engine

import (
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Upstream is an MCP server without an upstream block. Its tools are offered here.
type Upstream struct{ block definition.Upstream }

// NewUpstream returns the upstream of a URL. Its items get names with the prefix name and "_".
// origin says in messages where the upstream was configured.
func NewUpstream(name, url, origin string) (Upstream, error) {
	block, err := definition.NewUpstream(name, url, origin)
	if err != nil {
		return Upstream{}, fmt.Errorf("%s: upstream %q: %w", origin, name, err)
	}
	return Upstream{block}, nil
}

// WithoutPrefix returns the upstream without the name prefix for its tools and prompts.
func (u Upstream) WithoutPrefix() Upstream { return Upstream{u.block.WithoutPrefix()} }

// UpstreamStatus is the state of an upstream server at one moment.
type UpstreamStatus struct {
	// Name is the name of its block, or the name in [NewUpstream].
	Name string
	// Up reports that the server is connected and has listed its items.
	Up bool
	// Err is the reason why it is unreachable; nil if it is connected, or not tried yet.
	Err error
	// Idle reports that the server is connected at the first call of its tools, which has not happened.
	Idle bool
	// Late is the reason why the current snapshot was published without the items of the server. It
	// is nil once the server has listed its items, or is unreachable.
	Late error
	// Since is the start of this state, and NextAttempt the time of the next attempt to connect; zero
	// if they do not apply.
	Since, NextAttempt time.Time
	// Revision is the negotiated protocol revision; "" if there is none.
	Revision string
	// Instructions is the text of the server for a model. It is untrusted.
	Instructions string
	// Offered counts the items that the server lists. NotServed counts the items among them that
	// are not served here.
	Offered, NotServed int
	// LeftOut names the first items that are not served, each with the reason. Quarantined names
	// the tools that the lock file does not accept.
	LeftOut, Quarantined []string
	// PolicyMismatches counts the items that are not served because a policy does not match them.
	// NameConflicts counts the items that are not served because another item has their name.
	PolicyMismatches, NameConflicts int
	// LockErr is the error of writing accepted tools to the lock file; nil if it succeeded.
	LockErr error
}

// newUpstreams returns the upstream connections of the server, or an empty federation if the
// extension is missing.
func (s *Server) newUpstreams(x extension.Federation) federation.Federation {
	if x == nil {
		return federation.None()
	}
	o := s.options
	return x.Federate(federation.Options{
		Version: o.Version, Brokers: s.brokers, LookupEnv: o.Files.LookupEnv, Traceparent: s.telemetry.propagate, Supervisor: o.Scripts.Supervisor,
		Lock:   federation.LockOptions{Path: o.Files.LockPath, ReadOnly: o.Mode != serving, Strict: o.Files.Lock != nil, Offline: o.Mode.offline(), Eager: o.Mode == Eager, Audit: s.Audit},
		Relist: s.refreshUpstreams, Update: s.changes.UpstreamUpdated, Logger: o.Logger,
	})
}

// Follow subscribes to changes of an upstream resource, until leave is called. [Server.Watch]
// reports the changes.
func (s *Server) Follow(uri string) (leave func()) {
	s.states.Connect() // other replicas report changes, too
	return s.upstreams.WatchResource(uri)
}

// refreshUpstreams publishes the current offers of upstream servers. It returns how long that took,
// without the wait for another load, as the first load waits for servers.
func (s *Server) refreshUpstreams() time.Duration {
	s.loading.Lock()
	defer s.loading.Unlock()
	start := time.Now()
	if s.current.Load() != nil {
		previous := s.last.problems // only loads write it
		catalog.LogNewWarnings(s.options.Logger, s.refresh(), previous)
	}
	return time.Since(start)
}
