// Package engine turns files into an immutable [Snapshot] and runs calls
// against it. It is the RFC's McpServer: it registers tools, exposes
// capabilities, enforces policies, executes tools and tells hooks and
// listeners what happened. Transports are joined to it by package serve.
//
// # The path of a call
//
// What a call is made of stands in package call. [Server.Execute] loads the current
// snapshot once and never looks at another.
// The tool is found; the start hook fires; what its policies say without the
// arguments is asked, so that a call that is surely denied ends before its
// arguments are looked at; values of `from` inputs and defaults are filled in
// and the arguments are validated; policies decide, and limits count; the body
// runs under its deadline; the result is validated; and exactly one of the end
// and error hooks fires, however the call ended.
//
// # The path of a reload
//
// [Server.Load] and [Server.Reload] read sources, parse all of them, compile
// what is new, link everything together and publish the result by one pointer
// store. Any error leaves the old snapshot serving, and nothing outside of
// local variables has changed.
//
// The engine holds no global state: any number of servers live in one process.
// It imports no JavaScript, CEL or HCL library and no transport.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/execution/limitstore"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// Server is the RFC's McpServer (section 7). It is safe for concurrent use.
type Server struct {
	// Fixed at creation.
	options   Options
	pipeline  *pipeline.Pipeline
	hooks     *hooks.Runner
	brokers   host.Brokers
	states    *state.Lazy
	limits    ratelimit.Store
	observed  observed
	upstreams federation.Federation

	// current is what serves. It is stored once per load, and loaded once per call.
	current  atomic.Pointer[Snapshot]
	watchdog gofunc.Watchdog
	reloader
	auditing
	front
	audience audience
	closing  sync.Once
	closeErr error
}

// reloader makes snapshots, one load at a time.
type reloader struct {
	// Guarded by loading.
	loading    sync.Mutex
	builder    *catalog.Builder
	registered []*catalog.Item
	loads      uint64
	failed     uint64

	// Guarded by mu.
	mu   sync.Mutex
	last lastLoad
}

// auditing is the log that calls and events are written to.
type auditing struct {
	// audit is nil before the first load, and where there is no log.
	audit atomic.Pointer[audit.Log]
	// audited is the block that audit was opened by. It is set before the first snapshot
	// is stored, and never again.
	audited *definition.Audit

	telling sync.Mutex // events are told one at a time
	begun   bool       // the log is told of events; guarded by telling
}

// front is what the front knows of the server; a function is nil before the front gives it.
type front struct {
	clients atomic.Pointer[func() []Clients]    // counts them
	judge   atomic.Pointer[func(Status) Status] // adds to a status
}

// New returns a server. It reads no files: [Server.Load] does.
func New(o Options) (*Server, error) {
	unisolated := o.Scripts.Executor == nil && (o.Files.Tools != nil || o.Files.Config != nil)
	o = o.withDefaults()
	switch {
	case o.Name == "":
		return nil, errors.New("new server: the name is empty")
	case o.Transport != "http" && o.Transport != "stdio":
		return nil, fmt.Errorf("new server: transport %q is neither http nor stdio", o.Transport)
	case o.Mode < serving || o.Mode > Eager:
		return nil, fmt.Errorf("new server: there is no mode %d", o.Mode) // in which calls would not be audited
	case slices.ContainsFunc(o.Policies, func(p Policy) bool { return p == nil }):
		return nil, errors.New("new server: a policy is nil")
	case slices.ContainsFunc(o.Hooks, func(h Hook) bool { return h == nil }):
		return nil, errors.New("new server: a hook is nil")
	}
	parts, err := extension.Of(o.Extensions)
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	if parts.Federation == nil && len(o.Upstreams) > 0 {
		return nil, fmt.Errorf("new server: Options.Upstreams needs federation.New() of %s in Options.Extensions", federation.Package)
	}
	if parts.SQLite == nil && o.StatePath != "" {
		return nil, errors.New("new server: Options.StatePath needs sqlite.New() of github.com/mcpd/mcpd/extensions/sqlite in Options.Extensions")
	}
	limits, err := limitstore.New(o.Limits, o.Now, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	o.Policies, o.Hooks, o.Files.Vars = slices.Clone(o.Policies), slices.Clone(o.Hooks), maps.Clone(o.Files.Vars)
	watch, err := o.observe(parts.Telemetry)
	if err != nil {
		return nil, err
	}
	objects, err := gomodule.New(modulesOf(o.Scripts.Modules), o.Logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new server: %w", err), watch.close(context.Background()))
	}
	s := &Server{options: o, observed: watch, auditing: auditing{begun: !o.Pending}}
	s.states = &state.Lazy{Path: o.StatePath, Optional: o.StateOptional, Options: state.Options{Now: o.Now}, Logger: o.Logger}
	if parts.SQLite != nil {
		s.states.File = parts.SQLite.OpenState
	}
	drivers, missing := parts.Drivers()
	s.brokers = host.NewBrokers(host.Options{Drivers: drivers, LookupEnv: o.Files.LookupEnv, Open: s.states.Open, Supervisor: o.Scripts.Supervisor, Audit: s.writeEvent, Propagate: watch.propagate, Logger: o.Logger})
	if !o.Veil.over.CompareAndSwap(nil, s.brokers.Secrets) {
		return nil, errors.Join(errors.New("new server: the veil is another server's"), watch.close(context.Background()))
	}
	s.brokers.Modules = objects
	s.limits = limits
	s.hooks = hooks.New(hooks.Options{Executor: o.Scripts.Executor, Brokers: s.brokers, Metrics: watch.metrics, Now: o.Now})
	s.upstreams = s.newUpstreams(parts.Federation)
	made := o.catalog(s.hooks, s.brokers)
	made.NoDriver, made.NoTokens = missing, parts.OIDC == nil
	made.Accepted = s.upstreams.Accepted
	if parts.TypeScript != nil {
		made.Transpiler = parts.TypeScript.Transpiler()
	}
	if code := parts.CodeMode; code != nil {
		made.Codeact = func(block *definition.Codeact) []*catalog.Item {
			return code.CodeItems(block, o.programs(), o.Scripts.Trial, made.Transpiler)
		}
	}
	s.builder = catalog.New(made)
	s.pipeline = s.newPipeline()
	if watch.metrics != nil {
		watch.metrics.Collect(s.stats)
	}
	if unisolated {
		o.Logger.Warn("bodies run in this process", slog.String("set", "engine.Options.Scripts.Executor"), slog.String("see", "docs/embedding.md"))
	}
	return s, nil
}

// newPipeline returns what runs the calls of the server.
func (s *Server) newPipeline() *pipeline.Pipeline {
	o := s.options
	return pipeline.New(pipeline.Options{
		Catalog: s.serving, Executor: o.Scripts.Executor, Brokers: s.brokers, States: s.states, Limits: s.limits, FileHooks: s.hooks, Audit: s.audit.Load,
		Policies: o.policies(), Hooks: o.hooks(), Metrics: s.observed.metrics, Tracer: s.observed.tracer, Logger: o.Logger, Now: o.Now,
	})
}

// Snapshot returns what serves now; nil before the first successful load.
func (s *Server) Snapshot() *Snapshot { return s.current.Load() }

// Transport returns which transport package serve binds for the server.
func (s *Server) Transport() string { return s.options.Transport }

// Logger returns the server's logger, which shows no secrets.
func (s *Server) Logger() *slog.Logger { return s.options.Logger }

// Watch calls fn after each published snapshot, until stop is called, with the
// URIs of the resources that are others than before, have come or gone, and with
// those of [Server.Follow] that have changed. fn must not block, Load or Reload.
func (s *Server) Watch(fn func(changed []string)) (stop func()) { return s.audience.join(fn) }

// Status returns the state of the server.
func (s *Server) Status() Status {
	calls := s.pipeline.Stats()
	status := Status{
		Calls: calls.Calls, FailedCalls: calls.Failed, Running: calls.Running, Draining: calls.Draining,
		HookFailures: s.hooks.Failures(), HookWaits: s.hooks.Waits(),
	}
	if staffed := s.options.staffed(); staffed != nil {
		workers := staffed.Workers()
		status.Workers = &workers
	}
	if log := s.audit.Load(); log != nil {
		status.Unrecorded = log.Failing()
		status.Refusing = status.Unrecorded && log.Strict()
	}
	s.mu.Lock()
	status.Synchronized, status.Problems, status.sources = s.last.ok, slices.Clone(s.last.problems), s.last.sources
	status.Loads, status.FailedLoads = s.last.loads, s.last.failed
	s.mu.Unlock()
	if snap := s.current.Load(); snap != nil {
		status.Revision, status.Since = snap.Revision(), snap.since
		status.RestartNeeded = s.auditOutdated(snap.catalog.Audit)
		status.Limits = len(snap.catalog.RateLimits)
		for _, u := range s.upstreams.States(snap.catalog) {
			status.Upstreams = append(status.Upstreams, UpstreamStatus(u))
		}
		status.Tools, status.Policies, status.Hooks = len(snap.tools), snap.catalog.Policies, len(snap.catalog.Hooks)+len(s.options.Hooks)
		status.Resources, status.Templates, status.Prompts = len(snap.offers[call.Resources]), len(snap.offers[call.Templates]), len(snap.offers[call.Prompts])
	}
	return status
}

// Drain refuses new calls, waits for those that run, and then for their hooks.
// It returns the error of ctx when that is done first.
func (s *Server) Drain(ctx context.Context) error {
	if s.pipeline.Refuse() {
		s.tell(Draining, 0)
	}
	if err := s.pipeline.Drain(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// Close drains the server and releases what it holds. No call may follow. A
// second Close returns what the first did.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.closeErr = s.Drain(ctx)
		s.upstreams.Close()
		s.closeErr = errors.Join(s.closeErr, s.brokers.Close(), s.options.closeExecutors(), s.states.Close(), limitstore.Close(ctx, s.limits))
		s.tell(Stopped, 0)
		if log := s.audit.Load(); log != nil {
			s.closeErr = errors.Join(s.closeErr, log.Close())
		}
		s.closeErr = errors.Join(s.closeErr, s.observed.close(ctx))
	})
	return s.closeErr
}

// Returns has users come back by a front who let the server have tokens of theirs: the
// function that it gives knows who answers such a request of a browser, which needs no
// credential and may name any host, and is nil for all others.
func (s *Server) Returns() func(*http.Request) http.Handler { return s.brokers.Returns() }

// Execute runs one call to its end. It never panics, and the call ends soon
// after ctx does. Hooks fire exactly twice: at the start, and at the end or for
// the error.
func (s *Server) Execute(ctx context.Context, req call.Request) call.Result {
	return s.pipeline.Execute(ctx, req)
}

// Call calls a tool in this process, as the anonymous principal of a client.
// args is anything that encodes to a JSON object or null; the error is a
// [*call.Error] unless args do not encode.
func (s *Server) Call(ctx context.Context, tool string, args any) (call.Result, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return call.Result{}, fmt.Errorf("encode arguments of %s: %w", tool, err)
	}
	request := call.Request{
		Name: tool, Arguments: encoded,
		Caller: identity.Caller{
			Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent},
			Source: identity.Source{Listener: "local"},
		},
	}
	if string(encoded) == "null" {
		request.Arguments = nil
	} else if err := jsonguard.Check(encoded, jsonguard.Client()); err != nil {
		request.Refused = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	result := s.Execute(ctx, request)
	if result.Err != nil {
		return result, result.Err
	}
	return result, nil
}

// CheckArguments reports what keeps bytes from being the arguments of a call:
// they must be a JSON object within the bounds of the JSON gate. Arguments from
// outside pass it before [Server.Execute].
func CheckArguments(raw []byte) error { return pipeline.CheckArguments(raw) }

// Inside returns what the command mcpd and package serve need of a server and an embedding
// program does not: its methods have types of internal packages.
func (s *Server) Inside() inside { return inside{s} }

type inside struct{ server *Server }

// Explain judges a call as [Server.Execute] does, and runs no body. Policies in Go are
// asked. No hook fires, no limit counts it, and the audit log has no record of it. The
// error is that of a server that serves nothing.
func (i inside) Explain(ctx context.Context, of pipeline.Case) (pipeline.Explanation, error) {
	snap, err := i.server.loaded(ctx)
	if err != nil {
		return pipeline.Explanation{}, err
	}
	return i.server.pipeline.Explain(ctx, snap.catalog, of), nil
}

// State returns the store of what outlives calls, which is opened when it is first needed.
// [Server.Close] closes it.
func (i inside) State() (state.Store, error) { return i.server.states.Open() }

// Drifts returns how the tools of each pinned upstream differ from what was accepted of
// them, in the order of their blocks. The server is loaded.
func (i inside) Drifts() []federation.Drift {
	return i.server.upstreams.Drifts(i.server.current.Load().catalog)
}

// Inside returns what the command mcpd needs of a snapshot and an embedding program does not.
func (s *Snapshot) Inside() insideSnapshot { return insideSnapshot{s} }

type insideSnapshot struct{ snapshot *Snapshot }

// Said returns what the files say.
func (i insideSnapshot) Said() privdiff.Snapshot { return i.snapshot.catalog.Said }

// Upstreams returns the upstream blocks with paths as the process opens them.
func (i insideSnapshot) Upstreams() []definition.Upstream { return i.snapshot.catalog.Upstreams }
