package engine

import (
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Upstream is an MCP server whose tools are offered here without an upstream block.
type Upstream struct{ block definition.Upstream }

// NewUpstream returns the upstream of a URL. What it offers has names that begin with its
// own and "_". origin is where it is named, for messages.
func NewUpstream(name, url, origin string) (Upstream, error) {
	block, err := definition.NewUpstream(name, url, origin)
	if err != nil {
		return Upstream{}, fmt.Errorf("%s: upstream %q: %w", origin, name, err)
	}
	return Upstream{block}, nil
}

// WithoutPrefix returns the server as one whose tools and prompts have the names here that
// it gives them itself.
func (u Upstream) WithoutPrefix() Upstream { return Upstream{u.block.WithoutPrefix()} }

// UpstreamStatus is how an upstream server is.
type UpstreamStatus struct {
	// Name is that of its block.
	Name string
	// Up says that it can be reached and has told what it offers.
	Up bool
	// Err is why it cannot be reached, nil where it can or where that is not known yet.
	Err error
	// Idle says that it is reached when it is called first, which nobody has done yet.
	Idle bool
	// Late is why what serves began without it, nil once it has told what it offers or cannot
	// be reached.
	Late error
	// Since is when this began to be so, and Again when it is tried again; zero where there
	// is no such time.
	Since, Again time.Time
	// Revision is that of the protocol that it speaks, "" where none is agreed on.
	Revision string
	// Instructions tell a model how to use it, in its own words.
	Instructions string
	// Offered counts what it lists, and Left what of that could be offered here and is not.
	// LeftOut are the first of these, with the reasons. Quarantined are the tools among all
	// of these that nobody has accepted as they are.
	Offered, Left        int
	LeftOut, Quarantined []string
	// Unruled counts what is left out as a rule that covers it does not fit it, and Taken
	// what is as something else has its name.
	Unruled, Taken int
	// Unkept is why the lock file does not have what is taken in of it without a question,
	// nil where it does.
	Unkept error
}

// newUpstreams returns the connections of the server to others, by the extension of a program
// that has it.
func (s *Server) newUpstreams(x extension.Federation) federation.Federation {
	if x == nil {
		return federation.None()
	}
	o := s.options
	return x.Federate(federation.Options{
		Version: o.Version, Brokers: s.brokers, LookupEnv: o.Files.LookupEnv, Propagate: s.telemetry.propagate, Supervisor: o.Scripts.Supervisor,
		Pins:   federation.Pins{Path: o.Files.LockPath, Fixed: o.Mode != serving, Offline: o.Mode.offline(), Eager: o.Mode == Eager, Audit: s.Audit},
		Relist: s.refreshUpstreams, Update: s.subscribers.notify, Logger: o.Logger,
	})
}

// Follow has the upstream server of a resource tell when it changes, which those hear of who
// [Server.Watch], until leave is called.
func (s *Server) Follow(uri string) (leave func()) { return s.upstreams.Follow(uri) }

// relist brings in what upstream servers offer now. It returns how long that took once no
// other load was under way: the first one waits for servers.
func (s *Server) refreshUpstreams() time.Duration {
	s.loading.Lock()
	defer s.loading.Unlock()
	began := time.Now()
	if s.current.Load() != nil {
		told := s.last.problems // which loads alone write
		s.logWarnings(s.refresh(), told)
	}
	return time.Since(began)
}
