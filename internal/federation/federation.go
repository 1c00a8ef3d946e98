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
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Federation connects to upstream servers and returns what they offer. It is safe for
// concurrent use.
type Federation interface {
	// Accepted returns what the lock file accepts of the servers of the blocks. What is wrong
	// with the file, or with a block, is among its problems.
	Accepted(blocks []hclfile.Upstream, lock catalog.LockFile) catalog.Accepted
	// Offered returns what the servers of the blocks offer now and the lock file accepts, in
	// the order of the blocks. keys are the secrets of the files, by their addresses.
	Offered(blocks []hclfile.Upstream, keys map[string]string) catalog.Offers
	// Served notes that a catalog with what was offered last serves now: tools that are pinned
	// on first use are written to the lock file.
	Served(c *catalog.Catalog)
	// Keep connects to the servers of a catalog, and to no others, in the background.
	Keep(c *catalog.Catalog)
	// Settle waits for a while until each server has answered or failed once. It reports
	// whether there are any servers.
	Settle(ctx context.Context) bool
	// States returns how the servers of a catalog are, in the order of their blocks.
	States(c *catalog.Catalog) []State
	// Drifts returns how the pinned tools of the servers of a catalog differ from the lock file.
	Drifts(c *catalog.Catalog) []Drift
	// Follow subscribes to a resource at the server that offers it, until leave is called.
	Follow(uri string) (leave func())
	// Close ends all connections, and waits until they have ended.
	Close()
}

// Options are what a federation is made with.
type Options struct {
	// Version is the version of this server, which upstream servers are given.
	Version string
	// Brokers reach hosts, read secrets and redact them.
	Brokers host.Brokers
	// LookupEnv reads the variables that programs inherit.
	LookupEnv func(name string) (string, bool)
	// Propagate returns the traceparent (W3C Trace Context) of a context, "" for none.
	Propagate func(context.Context) (traceparent string)
	// Supervisor is the process that runs programs (see package supervisor).
	Supervisor []string
	Pins       Pins
	// Relist is called when a server offers something else than before, and returns how long
	// it took apart from its waiting for others. It may block; changes that come meanwhile are
	// told once it has returned and a multiple of that time has passed.
	Relist func() (took time.Duration)
	// Update is called with those followed resources that have changed.
	Update func(uris []string)
	Logger *slog.Logger
}

// Pins say how tools are held to what was accepted of them.
type Pins struct {
	// Path is the file of the lock, as the process opens it. "" keeps none: then only what a
	// block demands with pin = "strict" is left out, which is everything.
	Path string
	// Fixed writes nothing to the file: tools that are pinned on first use are so for as long
	// as the process runs.
	Fixed bool
	// Offline asks no server: the tools that were accepted stand for what it offers.
	Offline bool
	// Eager is for programs that are about to change the file: lazy servers are reached at
	// once, and rules are not held to the file.
	Eager bool
	// Audit writes an event of a tool with its attributes to the audit log. Nil writes nothing.
	Audit func(event string, attributes map[string]string)
}

// None is the federation of a program without extensions/federation. It refuses all blocks.
type None struct{}

// Package is the package that a program imports to have upstream servers.
const Package = "github.com/mcpd/mcpd/extensions/federation"

// Accepted accepts nothing; its problems are the blocks.
func (None) Accepted(blocks []hclfile.Upstream, _ catalog.LockFile) (accepted catalog.Accepted) {
	for i := range blocks {
		accepted.Problems = append(accepted.Problems, diag.Diagnostic{
			Code: "missing-extension", Range: blocks[i].Range,
			Summary: "this program has no upstream servers",
			Detail:  "import " + Package + " into the program, and add federation.New() to engine.Options.Extensions",
		})
	}
	return accepted
}

// Offered returns nothing.
func (None) Offered([]hclfile.Upstream, map[string]string) catalog.Offers { return catalog.Offers{} }

// Served does nothing.
func (None) Served(*catalog.Catalog) {}

// Keep does nothing.
func (None) Keep(*catalog.Catalog) {}

// Settle returns false: there are no servers.
func (None) Settle(context.Context) bool { return false }

// States returns nothing.
func (None) States(*catalog.Catalog) []State { return nil }

// Drifts returns nothing.
func (None) Drifts(*catalog.Catalog) []Drift { return nil }

// Follow does nothing.
func (None) Follow(string) (leave func()) { return func() {} }

// Close does nothing.
func (None) Close() {}
