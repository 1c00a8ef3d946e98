// Package federation defines the interface between the engine and upstream MCP servers.
//
// Package overlay implements it with an MCP client. A program imports the implementation as
// extensions/federation. A program that does not import it uses [None].
package federation

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Federation connects to upstream servers and returns what they offer. It is safe for
// concurrent use.
type Federation interface {
	// Accepted returns the tools that the lock file accepts for the given blocks. Its problems
	// report errors in the file and in the blocks.
	Accepted(blocks []definition.Upstream, lock catalog.LockFile) catalog.Accepted
	// Offers returns what the servers of the blocks offer now, as far as the lock file accepts
	// it, in the order of the blocks. keys are the secrets of the files, by address.
	Offers(blocks []definition.Upstream, keys map[string]string) catalog.Offers
	// Commit records that c now serves the latest offers. Tools pinned on first use are written
	// to the lock file.
	Commit(c *catalog.Catalog)
	// SetServers reconciles the connections with the upstream blocks of c, in the background.
	SetServers(c *catalog.Catalog)
	// WaitReady waits, for a limited time, until each server has answered or failed once. It
	// reports whether there are any servers.
	WaitReady(ctx context.Context) bool
	Status(c *catalog.Catalog) []ServerStatus
	// Drifts returns the differences between the pinned tools of the servers of c and the lock
	// file.
	Drifts(c *catalog.Catalog) []Drift
	// WatchResource subscribes to a resource at the server that offers it, until leave is
	// called.
	WatchResource(uri string) (leave func())
	// Watched returns the resources of servers that are watched.
	Watched() []string
	// Close closes all connections and waits until they are closed.
	Close()
}

// Options configure a federation.
type Options struct {
	// Version is the version of this server, sent to upstream servers.
	Version string
	Brokers host.Brokers
	// LookupEnv reads the variables that child processes inherit.
	LookupEnv func(name string) (string, bool)
	// Traceparent returns the traceparent (W3C Trace Context) of a context, or "".
	Traceparent func(context.Context) (traceparent string)
	// Supervisor is the command of the process that runs programs (see package supervisor).
	Supervisor []string
	Lock       LockOptions
	// Relist is called when the offers of a server change. It returns how long it worked,
	// without the time it waited for others. It may block. Later changes are reported after it
	// has returned and after a multiple of that time.
	Relist func() (took time.Duration)
	// Update is called with the watched resources that have changed.
	Update func(uris []string)
	Logger *slog.Logger
}

// LockOptions configure how tools are compared with the lock file.
type LockOptions struct {
	// Path is the lock file, as the process opens it. If it is "", nothing is locked: then only
	// blocks with pin = "strict" are affected, and all their tools are excluded.
	Path string
	// ReadOnly means that the file is never written: tools pinned on first use stay pinned for
	// the lifetime of the process.
	ReadOnly bool
	// Strict applies pin = "strict" to all blocks that pin tools.
	Strict bool
	// Offline means that no server is contacted: the accepted tools stand for its offers.
	Offline bool
	// Eager is for programs that are about to change the file: lazy servers are connected at
	// once, and policies are not checked against the file.
	Eager bool
	// Audit writes an event about a tool to the audit log. Nil writes nothing.
	Audit func(event string, attributes map[string]string)
}

// None returns the federation of a program without extensions/federation. It rejects all blocks
// and has no servers.
func None() Federation { return none{} }

type none struct{}

// Package is the import path that gives a program upstream servers.
const Package = "github.com/mcpd/mcpd/extensions/federation"

// Accepted accepts nothing and reports each block as a problem.
func (none) Accepted(blocks []definition.Upstream, _ catalog.LockFile) (accepted catalog.Accepted) {
	for i := range blocks {
		accepted.Problems = append(accepted.Problems, diag.Diagnostic{
			Code: "missing-extension", Range: blocks[i].Range,
			Summary: "this program has no upstream servers",
			Detail:  "import " + Package + " into the program, and add federation.New() to engine.Options.Extensions",
		})
	}
	return accepted
}

func (none) Offers([]definition.Upstream, map[string]string) catalog.Offers { return catalog.Offers{} }
func (none) Commit(*catalog.Catalog)                                        {}
func (none) SetServers(*catalog.Catalog)                                    {}
func (none) WaitReady(context.Context) bool                                 { return false }
func (none) Status(*catalog.Catalog) []ServerStatus                         { return nil }
func (none) Drifts(*catalog.Catalog) []Drift                                { return nil }
func (none) WatchResource(string) (leave func())                            { return func() {} }
func (none) Watched() []string                                              { return nil }
func (none) Close()                                                         {}

// ServerStatus is the status of an upstream server. engine.UpstreamStatus documents its fields.
type ServerStatus struct {
	Name                            string
	Up                              bool
	Err                             error
	Idle                            bool
	Late                            error
	Since, NextAttempt              time.Time
	Revision                        string
	Instructions                    string
	Offered, NotServed              int
	LeftOut, Quarantined            []string
	PolicyMismatches, NameConflicts int
	LockErr                         error
}

// Problems describes the problems of upstream servers; "" if there are none.
func Problems(servers []ServerStatus) string {
	var down, problems []string
	for i := range servers {
		if u := &servers[i]; !u.Up && !u.Idle {
			down = append(down, u.Name)
		}
	}
	if down != nil {
		problems = append(problems, "not reached: "+strings.Join(down, ", "))
	}
	for _, problem := range []struct {
		what  string
		count func(*ServerStatus) int
	}{
		{"tools in quarantine", func(u *ServerStatus) int { return len(u.Quarantined) }},
		{"left out because rules do not fit", func(u *ServerStatus) int { return u.PolicyMismatches }},
		{"left out because names are taken", func(u *ServerStatus) int { return u.NameConflicts }},
	} {
		var counts []string
		for i := range servers {
			if n := problem.count(&servers[i]); n > 0 {
				counts = append(counts, fmt.Sprintf("%d of %s", n, servers[i].Name))
			}
		}
		if counts != nil {
			problems = append(problems, problem.what+": "+strings.Join(counts, ", "))
		}
	}
	return strings.Join(problems, "; ")
}

// Drift describes how the tools of an upstream differ from the accepted ones.
type Drift struct {
	// Upstream is the name of the block.
	Upstream string
	// Err says why the drift is not known; the other fields are empty then.
	Err error
	// New reports whether the lock file does not have the upstream.
	New bool
	// Changes are the differences from the lock file, sorted by name. A tool that the file does
	// not have is a change, even if the block pins it on first use. A tool that the file has
	// and the block does not include is not a change: the server has not changed it.
	Changes []lockfile.Change
	// Tools are the names of all compared tools, changed or not.
	Tools []string
	// Unacceptable lists the tools that cannot be accepted, each with the reason.
	Unacceptable []string
}
