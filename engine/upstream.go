package engine

import (
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Upstream is an MCP server whose tools are offered here, without an upstream block.
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

// UpstreamStatus is the state of an upstream server.
type UpstreamStatus struct {
	// Name is the name of its block.
	Name string
	// Up reports that the server is connected and has listed its items.
	Up bool
	// Err is the reason why it is unreachable; nil if it is connected, or not tried yet.
	Err error
	// Idle reports that the server is connected at its first call, which has not happened yet.
	Idle bool
	// Late is the reason why the current snapshot started without the server. It is nil once the
	// server has listed its items or is unreachable.
	Late error
	// Since is the start time of this state, and Again the time of the next attempt; zero if not
	// applicable.
	Since, Again time.Time
	// Revision is the negotiated protocol revision; "" if there is none.
	Revision string
	// Instructions is the text of the server for a model.
	Instructions string
	// Offered counts the listed items, and Left the listed items that are not served. LeftOut names
	// the first of these, with reasons. Quarantined names the tools among them that are not
	// accepted.
	Offered, Left        int
	LeftOut, Quarantined []string
	// Unruled counts the items that are left out because a policy does not match them, and Taken
	// those with a name that another item has.
	Unruled, Taken int
	// Unkept is the error of writing accepted tools to the lock file; nil if it succeeded.
	Unkept error
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
		Lock:   federation.LockOptions{Path: o.Files.LockPath, ReadOnly: o.Mode != serving, Offline: o.Mode.offline(), Eager: o.Mode == Eager, Audit: s.Audit},
		Relist: s.refreshUpstreams, Update: s.subscribers.notify, Logger: o.Logger,
	})
}

// Follow subscribes to changes of an upstream resource, until leave is called. [Server.Watch]
// reports the changes.
func (s *Server) Follow(uri string) (leave func()) { return s.upstreams.WatchResource(uri) }

// refreshUpstreams publishes the current offers of upstream servers. It returns how long that took,
// without the wait for another load, as the first load waits for servers.
func (s *Server) refreshUpstreams() time.Duration {
	s.loading.Lock()
	defer s.loading.Unlock()
	start := time.Now()
	if s.current.Load() != nil {
		previous := s.last.problems // only loads write it
		s.logWarnings(s.refresh(), previous)
	}
	return time.Since(start)
}
