// Package federation says what the engine asks of the connections to upstream MCP servers.
// Package overlay has them, which links a client of MCP: a program imports it as
// extensions/federation. [None] stands for them in a program that does not.
package federation

import (
	"context"
	"log/slog"
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
	// Accepted returns what the lock file accepts of the servers of the blocks. What is wrong
	// with the file, or with a block, is among its problems.
	Accepted(blocks []definition.Upstream, lock catalog.LockFile) catalog.Accepted
	// Offered returns what the servers of the blocks offer now and the lock file accepts, in
	// the order of the blocks. keys are the secrets of the files, by their addresses.
	Offers(blocks []definition.Upstream, keys map[string]string) catalog.Offers
	// Served notes that a catalog with what was offered last serves now: tools that are pinned
	// on first use are written to the lock file.
	Commit(c *catalog.Catalog)
	// Keep connects to the servers of a catalog, and to no others, in the background.
	SetServers(c *catalog.Catalog)
	// Settle waits for a while until each server has answered or failed once. It reports
	// whether there are any servers.
	WaitReady(ctx context.Context) bool
	Status(c *catalog.Catalog) []ServerStatus
	// Drifts returns how the pinned tools of the servers of a catalog differ from the lock file.
	Drifts(c *catalog.Catalog) []Drift
	// Follow subscribes to a resource at the server that offers it, until leave is called.
	WatchResource(uri string) (leave func())
	// Close ends all connections, and waits until they have ended.
	Close()
}

// Options are what a federation is made with.
type Options struct {
	// Version is the version of this server, which upstream servers are given.
	Version string
	Brokers host.Brokers
	// LookupEnv reads the variables that programs inherit.
	LookupEnv func(name string) (string, bool)
	// Propagate returns the traceparent (W3C Trace Context) of a context, "" for none.
	Traceparent func(context.Context) (traceparent string)
	// Supervisor is the process that runs programs (see package supervisor).
	Supervisor []string
	Lock       LockOptions
	// Relist is called when a server offers something else than before, and returns how long
	// it took apart from its waiting for others. It may block; changes that come meanwhile are
	// told once it has returned and a multiple of that time has passed.
	Relist func() (took time.Duration)
	// Update is called with those followed resources that have changed.
	Update func(uris []string)
	Logger *slog.Logger
}

// Pins say how tools are held to what was accepted of them.
type LockOptions struct {
	// Path is the file of the lock, as the process opens it. "" keeps none: then only what a
	// block demands with pin = "strict" is left out, which is everything.
	Path string
	// Fixed writes nothing to the file: tools that are pinned on first use are so for as long
	// as the process runs.
	ReadOnly bool
	// Offline asks no server: the tools that were accepted stand for what it offers.
	Offline bool
	// Eager is for programs that are about to change the file: lazy servers are reached at
	// once, and rules are not held to the file.
	Eager bool
	// Audit writes an event of a tool with its attributes to the audit log. Nil writes nothing.
	Audit func(event string, attributes map[string]string)
}

// None returns the federation of a program without extensions/federation. It refuses all
// blocks, and has no servers.
func None() Federation { return none{} }

type none struct{}

// Package is the package that a program imports to have upstream servers.
const Package = "github.com/mcpd/mcpd/extensions/federation"

// Accepted accepts nothing; its problems are the blocks.
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
func (none) Close()                                                         {}

// State is how an upstream server is, for operators; engine.UpstreamStatus says what its
// members mean.
type ServerStatus struct {
	Name                 string
	Up                   bool
	Err                  error
	Idle                 bool
	Late                 error
	Since, Again         time.Time
	Revision             string
	Instructions         string
	Offered, Left        int
	LeftOut, Quarantined []string
	Unruled, Taken       int
	Unkept               error
}

// Drift is how the tools of an upstream differ from what was accepted of them.
type Drift struct {
	// Upstream is the name of its block.
	Upstream string
	// Err says why it is not known; the other members are empty then.
	Err error
	// New says that the lock file does not know the upstream.
	New bool
	// Changes are the differences to the lock file, sorted by name. Whatever the block says
	// of first use, what the file does not have is one. What the file has and the block does
	// not include is none: the server has not changed it.
	Changes []lockfile.Change
	// Tools are the names of all that was compared, whether it differs or not.
	Tools []string
	// Refused says of what nobody can accept why.
	Unacceptable []string
}
