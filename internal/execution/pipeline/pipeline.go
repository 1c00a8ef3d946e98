// Package pipeline takes a call from its beginning to its end: it finds what is
// called, asks policies, fills in and validates arguments, counts limits, runs the
// body, checks what that returned, writes down what became of it, and fires the hooks
// around all of it.
//
// A [Pipeline] runs every call of a server on the one catalog that it loads for it.
// What a call goes through is the same for tools, resources, prompts and completions,
// whatever carried it and whether a client, a body or a test made it.
//
// It reads no files and keeps nothing of a call that has ended: a call that waits for
// its client is in the state store, and goes on from there.
//
// Start at [Pipeline.Execute] in execution.go: resolve.go finds the item, stages.go decides and
// validates, limits.go charges the limits, run.go runs the body, and outcome.go checks the
// result. The errors are in errors.go.
package pipeline

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
)

// Pipeline runs calls. It is safe for concurrent use.
type Pipeline struct {
	// Fixed at creation.
	options Options
	prefix  string // what call ids begin with
	seed    maphash.Seed

	sequence atomic.Uint64
	inFlight workqueue.Calls
	// places are those of the calls that were not refused for want of one.
	capacity           workqueue.Shares
	calls, failedCalls atomic.Uint64
}

// Options are what calls run with. All of them are required but Policies, Hooks, Metrics and Tracer.
type Options struct {
	// Catalog returns what serves now; every call asks once. The error says why
	// nothing does: the catalog is empty then, and never nil.
	Catalog  func(ctx context.Context) (*catalog.Catalog, error)
	Executor scripting.Executor
	Brokers  host.Brokers
	States   *state.Lazy
	Limits   ratelimit.Store
	// Audit returns the log that calls are written to; nil for none.
	Audit     func() *audit.Log
	FileHooks *hooks.Runner
	// Policies and Hooks are those that are written in Go, in their order.
	Policies []Policy
	Hooks    []Hook
	// Metrics and Tracer observe calls. They are nil and zero together; with Metrics alone
	// nothing is traced.
	Metrics observe.Metrics
	Tracer  observe.Tracer
	Logger  *slog.Logger
	Now     func() time.Time
}

// Policy is a policy that is written in Go. It changes nothing of what it is given. Unless it
// allows, the caller is told the reason; an error, which denies, is the operator's to know.
type Policy func(caller *identity.Caller, name string, args map[string]any) (allowed bool, reason string, err error)

// Hook is a hook that is written in Go: it runs in line, on a copy of the event.
type Hook func(ctx context.Context, event call.Event)

func New(o Options) *Pipeline {
	return &Pipeline{options: o, prefix: strconv.FormatUint(rand.Uint64()>>24, 36) + "-", seed: maphash.MakeSeed()}
}

// Stats counts calls, nested ones too.
type Stats struct {
	// Calls and Failed have ended; Running have not.
	Calls, Failed uint64
	Running       int
	// Draining says that no new calls are taken.
	Draining bool
}

func (p *Pipeline) Stats() Stats {
	return Stats{Calls: p.calls.Load(), Failed: p.failedCalls.Load(), Running: int(p.inFlight.Running()), Draining: p.inFlight.Draining()}
}

// Refuse has no new calls taken, and reports whether this is the first to say so.
func (p *Pipeline) StopAccepting() bool { return p.inFlight.StartDrain() }

// Drain waits for the calls that run, and then for their hooks. It returns the error
// of ctx when that is done first.
func (p *Pipeline) Drain(ctx context.Context) error {
	if err := p.inFlight.Drain(ctx); err != nil {
		return fmt.Errorf("calls still run: %w", err)
	}
	if err := p.options.FileHooks.Flush(ctx); err != nil {
		return fmt.Errorf("hooks still run: %w", err)
	}
	return nil
}

// ownerOf returns a number for the client for which a call takes room (see
// [workqueue.ClientOf]). The seed keeps callers from choosing whom they share a number with.
func (p *Pipeline) ownerOf(c *identity.Caller) uint64 {
	address, _ := netip.ParseAddr(c.Source.IP)
	return workqueue.ClientOf(&c.Principal, address, c.Source.Listener).Number(p.seed)
}
