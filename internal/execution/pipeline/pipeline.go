// Package pipeline executes calls. It resolves the item, evaluates policies, computes and validates
// arguments, charges limits, runs the handler, validates the result, writes the audit records, and
// fires the hooks.
//
// A [Pipeline] runs each call on one catalog, which it loads once per call. Tools, resources,
// prompts and completions take the same path, whatever the transport, and whether a client, a
// script or a test makes the call.
//
// It reads no files, and keeps no state of a call that has ended. A suspended call is in the state
// store.
//
// Start at [Pipeline.Execute] in execution.go: resolve.go finds the item, stages.go evaluates,
// validates and charges the limits, run.go runs the handler, and outcome.go checks the
// result. errors.go has the errors.
package pipeline

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
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
	"github.com/mcpd/mcpd/internal/ops/recent"
	"github.com/mcpd/mcpd/scripting"
)

// Pipeline runs calls. It is safe for concurrent use.
type Pipeline struct {
	// Fixed at creation.
	options Options
	prefix  string // prefix of call ids
	seed    maphash.Seed

	sequence atomic.Uint64
	inFlight workqueue.Calls
	// capacity has the slots for concurrent calls.
	capacity           workqueue.Shares
	recent             recent.Ring
	calls, failedCalls atomic.Uint64
	ended              [len(countedOutcomes)]atomic.Uint64 // calls by outcome; only for reports
}

// countedOutcomes are the outcomes of calls.
var countedOutcomes = [...]string{
	audit.OutcomeOK, audit.OutcomeInputRequired, audit.OutcomeDryRun,
	string(call.InvalidInput), string(call.ToolNotFound), string(call.PolicyDenied), string(call.ExecutionError), string(call.Timeout),
}

// Options configure a [Pipeline]. All fields but Policies, Hooks, Metrics and Tracer are required.
type Options struct {
	// Catalog returns the serving catalog; every call uses it once. With an error, the catalog is
	// empty but not nil.
	Catalog  func(ctx context.Context) (*catalog.Catalog, error)
	Executor scripting.Executor
	Brokers  host.Brokers
	States   *state.Lazy
	Limits   ratelimit.Store
	// Audit returns the audit log; nil for none.
	Audit     func() *audit.Log
	FileHooks *hooks.Runner
	// Policies and Hooks are written in Go; they run in order.
	Policies []Policy
	Hooks    []Hook
	// Metrics and Tracer are nil and zero together. With Metrics alone, nothing is traced. A call
	// whose emitter is an [observe.StepReceiver] has spans in any case.
	Metrics observe.Metrics
	Tracer  observe.Tracer
	Logger  *slog.Logger
	Now     func() time.Time
}

// Policy is a Go policy. It must not modify its arguments. If it denies, the caller gets the
// reason. An error denies, too, and is only logged.
type Policy func(caller *identity.Caller, name string, args map[string]any) (allowed bool, reason string, err error)

// Hook is a Go hook. It runs synchronously, on a copy of the event.
type Hook func(ctx context.Context, event call.Event)

// New returns a pipeline. Any number of goroutines may use it.
func New(o Options) *Pipeline {
	return &Pipeline{options: o, prefix: strconv.FormatUint(rand.Uint64()>>24, 36) + "-", seed: maphash.MakeSeed()}
}

// Stats counts calls, including nested calls.
type Stats struct {
	// Calls and Failed have ended; Running have not.
	Calls, Failed uint64
	Running       int
	// Draining reports that new calls are rejected.
	Draining bool
}

// Stats returns the current counts.
func (p *Pipeline) Stats() Stats {
	return Stats{Calls: p.calls.Load(), Failed: p.failedCalls.Load(), Running: int(p.inFlight.Running()), Draining: p.inFlight.Draining()}
}

func (p *Pipeline) countOutcome(outcome string) {
	if i := slices.Index(countedOutcomes[:], outcome); i >= 0 {
		p.ended[i].Add(1)
	}
}

// Outcomes counts the calls that have ended by their outcome, as metrics name it. Only calls of
// catalogs with a report block are counted.
func (p *Pipeline) Outcomes() map[string]uint64 {
	counts := map[string]uint64{}
	for i, outcome := range countedOutcomes {
		counts[outcome] = p.ended[i].Load()
	}
	return counts
}

// Recent has the last calls. It records none until it is started.
func (p *Pipeline) Recent() *recent.Ring { return &p.recent }

// StopAccepting rejects new calls from now on. It reports whether this is the first time.
func (p *Pipeline) StopAccepting() bool { return p.inFlight.StartDrain() }

// Drain waits for running calls, and then for their hooks. It returns the error of ctx if ctx ends
// first.
func (p *Pipeline) Drain(ctx context.Context) error {
	if err := p.inFlight.Drain(ctx); err != nil {
		return fmt.Errorf("calls still run: %w", err)
	}
	if err := p.options.FileHooks.Flush(ctx); err != nil {
		return fmt.Errorf("hooks still run: %w", err)
	}
	return nil
}

// ownerOf returns a number that identifies the client of a call (see [workqueue.ClientOf]). The
// seed prevents callers from choosing a number.
func (p *Pipeline) ownerOf(c *identity.Caller) uint64 {
	address, _ := netip.ParseAddr(c.Source.IP)
	return workqueue.ClientOf(&c.Principal, address, c.Source.Listener).Number(p.seed)
}
