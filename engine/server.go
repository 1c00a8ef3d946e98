// Package engine loads tool files into an immutable [Snapshot] and executes calls on it. It is the
// RFC's McpServer: it registers tools, exposes capabilities, enforces policies, executes tools, and
// fires hooks and events. Package serve adds transports.
//
// To start, create a server, add tools with [AddTool] or [Options].Files, and pass it to serve.New:
//
//	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: engine.Dir("tools.d")}})
//	if err != nil {
//		return err
//	}
//	if err := engine.AddTool(server, engine.ToolOptions{Name: "track_order"}, track); err != nil {
//		return err
//	}
//	return serve.New(server, serve.Options{}).Run(ctx)
//
// Without package serve, call [Server.Execute], and [Server.Close] at the end. Scripts run in the
// process of the program, and can end it, unless [Options].Scripts has an Executor.
//
// # The path of a call
//
// Package call defines the data of a call. [Server.Execute] loads the current snapshot once and
// uses it for the whole call. It finds the tool and fires the start hook. It evaluates the policies
// that need no arguments, so that a denied call ends before its arguments are read. It computes
// `from` inputs and defaults, and validates the arguments. It evaluates the remaining policies and
// charges the limits. It runs the script under its deadline and validates the result. Exactly one
// of the end and error hooks fires, however the call ends.
//
// # The path of a reload
//
// [Server.Load] and [Server.Reload] read the sources, parse all of them, compile the new ones, link
// everything, and publish the result with one pointer store. After an error the old snapshot keeps
// serving, and only local variables have changed.
//
// The engine has no global state: any number of servers run in one process.
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
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/changes"
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
	"github.com/mcpd/mcpd/internal/ops/recent"
)

// Server is the McpServer of RFC-0001 (section 7). It is safe for concurrent use.
type Server struct {
	// Fixed at creation.
	options   Options
	pipeline  *pipeline.Pipeline
	hooks     *hooks.Runner
	brokers   host.Brokers
	states    *state.Lazy
	limits    ratelimit.Store
	telemetry telemetry
	upstreams federation.Federation

	// current is the serving snapshot. It is stored once per load and loaded once per call.
	current  atomic.Pointer[Snapshot]
	watchdog gofunc.Watchdog
	reloader
	auditing
	front
	changes  *changes.Changes
	closing  sync.Once
	closeErr error
}

// reloader builds snapshots, one load at a time.
type reloader struct {
	// Guarded by loading.
	loading sync.Mutex
	builder *catalog.Builder
	goTools []*catalog.Item // only appended to, since builds read it later
	goNames map[string]bool
	loads   uint64
	failed  uint64
	testing atomic.Bool // a load runs tests; not guarded

	// Guarded by mu.
	mu   sync.Mutex
	last lastLoad
}

// auditing is the audit log for calls and server events.
type auditing struct {
	// audit is nil before the first load, and if there is no log.
	audit atomic.Pointer[audit.Log]
	// auditBlock is the block that audit was opened with. It is set before the first snapshot is
	// stored, and never again.
	auditBlock *definition.Audit
	// firstState is the state block of the first snapshot, which never changes.
	firstState *definition.State

	eventMu sync.Mutex // events are sent one at a time
	ready   bool       // events are audited; guarded by eventMu
}

// front holds the functions of a front; each is nil until the front sets it.
type front struct {
	countClients atomic.Pointer[func() []Clients]    // counts the clients
	filterStatus atomic.Pointer[func(Status) Status] // completes a status
}

// New returns a server. It reads no files; [Server.Load] does.
func New(o Options) (*Server, error) {
	inProcess, clock := o.Scripts.Executor == nil && (o.Files.Tools != nil || o.Files.Config != nil), o.Now
	o = o.withDefaults()
	switch {
	case o.Name == "":
		return nil, errors.New("new server: the name is empty")
	case o.Transport != "http" && o.Transport != "stdio":
		return nil, fmt.Errorf("new server: transport %q is neither http nor stdio", o.Transport)
	case o.Mode < serving || o.Mode > Eager:
		return nil, fmt.Errorf("new server: there is no mode %d", o.Mode) // which would leave calls unaudited
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
	var s *Server
	o.Policies, o.Hooks, o.Files.Vars = slices.Clone(o.Policies), slices.Clone(o.Hooks), maps.Clone(o.Files.Vars)
	states, err := parts.States(extension.StateOptions{
		Path: o.StatePath, Optional: o.StateOptional, Database: state.Database{URL: o.StateURL, Fleet: o.StateFleet, Keys: o.StateKeys, Existing: o.StateExisting},
		Now: clock, Logger: o.Logger, Block: func() (string, *definition.State) { return s.stateBlock() },
		Resolve: func(ctx context.Context, secret string) (string, error) {
			return s.brokers.Secrets.Resolve(ctx, secret)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	tel, err := o.openTelemetry(parts.Telemetry)
	if err != nil {
		return nil, err
	}
	limits, err := limitstore.New(limitstore.Options{Shared: o.Limits, States: states, Metrics: tel.metrics, Now: o.Now, Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new server: %w", err), tel.close(context.Background()))
	}
	modules, err := gomodule.New(modulesOf(o.Scripts.Modules), o.Logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new server: %w", err), tel.close(context.Background()))
	}
	s = &Server{options: o, reloader: reloader{goNames: map[string]bool{}}, states: states, telemetry: tel, auditing: auditing{ready: !o.DeferReady}, changes: changes.New(o.Logger, states.Publish)}
	states.Receive = s.receive
	drivers, missing := parts.Drivers()
	s.brokers = host.NewBrokers(host.Options{Drivers: drivers, LookupEnv: o.Files.LookupEnv, OpenStore: s.states.Open, Publish: s.states.Publish, Supervisor: o.Scripts.Supervisor, Audit: s.recordEvent, Traceparent: tel.propagate, Logger: o.Logger})
	if !o.LogRedactor.store.CompareAndSwap(nil, s.brokers.Secrets) {
		return nil, errors.Join(errors.New("new server: the redactor belongs to another server"), tel.close(context.Background()))
	}
	s.brokers.Modules = modules
	s.limits = limits
	s.hooks = hooks.New(hooks.Options{Executor: o.Scripts.Executor, Brokers: s.brokers, Metrics: tel.metrics, Now: o.Now})
	s.upstreams = s.newUpstreams(parts.Federation)
	options := o.catalog(s.hooks, s.brokers)
	options.NoDriver, options.NoTokens = missing, parts.OIDC == nil
	options.Accepted = s.upstreams.Accepted
	options.SharedResults, options.Now = states.Results, o.Now
	if parts.TypeScript != nil {
		options.Transpiler = parts.TypeScript.Transpiler()
	}
	if code := parts.CodeMode; code != nil {
		options.Codeact = func(block *definition.Codeact) []*catalog.Item {
			return code.CodeItems(block, o.codeExecutor(), o.Scripts.Trial, options.Transpiler)
		}
	}
	s.builder = catalog.New(options)
	s.pipeline = s.newPipeline()
	if tel.metrics != nil {
		tel.metrics.Collect(s.stats)
	}
	if inProcess {
		o.Logger.Warn("scripts run in this process", slog.String("set", "engine.Options.Scripts.Executor"), slog.String("see", "docs/embedding.md"))
	}
	return s, nil
}

// newPipeline returns the pipeline that runs the server's calls.
func (s *Server) newPipeline() *pipeline.Pipeline {
	o := s.options
	return pipeline.New(pipeline.Options{
		Catalog: s.currentCatalog, Executor: o.Scripts.Executor, Brokers: s.brokers, States: s.states, Limits: s.limits, FileHooks: s.hooks, Audit: s.audit.Load,
		Policies: o.policies(), Hooks: o.hooks(), Metrics: s.telemetry.metrics, Tracer: s.telemetry.tracer, Logger: o.Logger, Now: o.Now,
	})
}

// Snapshot returns the serving snapshot; nil before the first successful load.
func (s *Server) Snapshot() *Snapshot { return s.current.Load() }

// stateBlock returns the name of the server, and the state block of the first snapshot if the server
// uses it.
func (s *Server) stateBlock() (name string, block *definition.State) {
	snap := s.current.Load()
	if snap == nil || s.options.Mode != serving && !s.options.StateExisting {
		return s.options.Name, nil
	}
	return snap.catalog.Server.Name, s.firstState
}

// receive handles a message of another replica.
func (s *Server) receive(m state.Message) {
	s.brokers.Receive(m)
	s.changes.Receive(m, s.upstreams.Watched)
}

// Transport returns the transport that package serve binds for the server.
func (s *Server) Transport() string { return s.options.Transport }

// Logger returns the server's logger, which redacts secrets.
func (s *Server) Logger() *slog.Logger { return s.options.Logger }

// Watch calls fn after each published snapshot, until stop is called. changed lists the URIs of
// resources that were added, removed or changed, and of resources that [Server.Follow] reports as
// changed. fn must not block, and must not call Load or Reload.
func (s *Server) Watch(fn func(changed []string)) (stop func()) { return s.changes.Subscribe(fn) }

// Status returns the state of the server.
func (s *Server) Status() Status {
	calls := s.pipeline.Stats()
	status := Status{
		Calls: calls.Calls, FailedCalls: calls.Failed, Running: calls.Running, Draining: calls.Draining,
		HookFailures: s.hooks.Failures(), HookWaits: s.hooks.Waits(), StateAway: s.states.Reach().AwaySince(),
	}
	if staffed := s.options.workerExecutor(); staffed != nil {
		workers := staffed.Workers()
		status.Workers = &workers
	}
	if log := s.audit.Load(); log != nil {
		status.AuditFailing = log.Failing()
		status.RejectingCalls = status.AuditFailing && log.Strict()
	}
	s.mu.Lock()
	status.Synchronized, status.Problems, status.sources = s.last.ok, slices.Clone(s.last.problems), s.last.sources
	status.Loads, status.FailedLoads = s.last.loads, s.last.failed
	s.mu.Unlock()
	if snap := s.current.Load(); snap != nil {
		status.Revision, status.Since = snap.Revision(), snap.publishedAt
		status.RestartNeeded = s.auditChanged(snap.catalog.Audit) || s.stateChanged(snap.catalog)
		status.Limits = len(snap.catalog.RateLimits)
		for _, u := range s.upstreams.Status(snap.catalog) {
			status.Upstreams = append(status.Upstreams, UpstreamStatus(u))
		}
		status.Tools, status.Policies, status.Hooks = len(snap.tools), snap.catalog.Policies, len(snap.catalog.Hooks)+len(s.options.Hooks)
		status.Resources, status.Templates, status.Prompts = len(snap.offers[call.Resources]), len(snap.offers[call.Templates]), len(snap.offers[call.Prompts])
	}
	return status
}

// Drain rejects new calls, waits for running calls, and then for their hooks. It returns the error
// of ctx if ctx ends first.
func (s *Server) Drain(ctx context.Context) error {
	if s.pipeline.StopAccepting() {
		s.emit(Draining, 0)
	}
	if err := s.pipeline.Drain(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// Close drains the server and releases its resources. No call may follow. A second Close returns
// the result of the first.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.closeErr = s.Drain(ctx)
		s.upstreams.Close()
		s.closeErr = errors.Join(s.closeErr, s.brokers.Close(), s.options.closeExecutors(), limitstore.Close(ctx, s.limits), s.states.Close())
		s.emit(Stopped, 0)
		if log := s.audit.Load(); log != nil {
			s.closeErr = errors.Join(s.closeErr, log.Close())
		}
		s.closeErr = errors.Join(s.closeErr, s.telemetry.close(ctx))
	})
	return s.closeErr
}

// OAuthCallbacks returns a function for the front. The function returns the handler of an OAuth
// redirect of a user's browser, or nil for any other request. Such a request needs no credential,
// and its Host header may be anything.
func (s *Server) OAuthCallbacks() func(*http.Request) http.Handler { return s.brokers.OAuthCallbacks() }

// Execute runs one call, and loads the files first if the server is not loaded. It does not verify
// the caller in req; an unset principal is anonymous. Check arguments from outside with
// [CheckArguments] first. A result with an Ask is not final: execute the request again with a Resume.
// Execute never panics, and the call ends soon after ctx. Hooks fire exactly twice: at the start, and
// at the end or for the error.
func (s *Server) Execute(ctx context.Context, req call.Request) call.Result {
	return s.pipeline.Execute(ctx, req)
}

// Call calls a tool in this process, as an anonymous client. args must encode to a JSON object or
// null. The error is a [*call.Error] unless args cannot be encoded.
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
		request.ArgumentsErr = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	result := s.Execute(ctx, request)
	if result.Err != nil {
		return result, result.Err
	}
	return result, nil
}

// CheckArguments reports whether bytes are valid arguments of a call: a JSON object within the
// limits of package jsonguard. Check arguments from outside before [Server.Execute].
func CheckArguments(raw []byte) error { return pipeline.CheckArguments(raw) }

// Inside is for the command mcpd and package serve, and may change in any version. Other programs
// must not use it: its methods have types of internal packages.
func (s *Server) Inside() inside { return inside{s} }

type inside struct{ server *Server }

// Explain evaluates the policies for a call like [Server.Execute], without running its script. Go
// policies are called. No hook fires, no limit is charged, and nothing is audited. The error is not
// nil if the server serves nothing.
func (i inside) Explain(ctx context.Context, of pipeline.HypotheticalCall) (pipeline.Explanation, error) {
	snap, err := i.server.ensureLoaded(ctx)
	if err != nil {
		return pipeline.Explanation{}, err
	}
	return i.server.pipeline.Explain(ctx, snap.catalog, of), nil
}

// Catalog returns the serving catalog. The server must have loaded.
func (i inside) Catalog() *catalog.Catalog { return i.server.Snapshot().catalog }

// Redact returns text without the values of secrets, and AuditLog the audit log; nil if there is none.
func (i inside) Redact(text string) string { return i.server.brokers.Secrets.Redact(text) }
func (i inside) AuditLog() *audit.Log      { return i.server.audit.Load() }

// State returns the state store. It is opened at the first use; [Server.Close] closes it.
func (i inside) State() (state.Store, error) { return i.server.states.Open() }

// States returns what opens the state store, and knows the servers that share it.
func (i inside) States() *state.Lazy { return i.server.states }

// Outcomes counts the calls that have ended by their outcome, and Recent has the last ones. IsTesting
// reports whether a load runs tests before it serves the files. Limits counts calls against limits.
func (i inside) Outcomes() map[string]uint64 { return i.server.pipeline.Outcomes() }
func (i inside) Recent() *recent.Ring        { return i.server.pipeline.Recent() }
func (i inside) IsTesting() bool             { return i.server.testing.Load() }
func (i inside) Limits() ratelimit.Store     { return i.server.limits }

// Secret returns the value of a secret, and Metrics where to count; nil without telemetry.
func (i inside) Secret(ctx context.Context, name string) (string, error) {
	return i.server.brokers.Secrets.Resolve(ctx, name)
}
func (i inside) Metrics() observe.Metrics { return i.server.telemetry.metrics }

// Project returns the files of the last load before a status, by their paths in a project. The caller
// must not change the contents.
func (inside) Project(at Status) map[string][]byte { return at.sources.Project() }

// Examine reads the changed files and returns all their diagnostics and upstream blocks, like a first
// [Server.Load] that publishes nothing. It runs no tests, and opens neither the audit log nor a port.
func (i inside) Examine(of Change) (diag.List, []definition.Upstream) {
	i.server.loading.Lock()
	defer i.server.loading.Unlock()
	change := catalog.Change{Paths: of.Paths, Config: of.Config, All: of.All}
	return i.server.builder.Examine(i.server.options.Logger, change, i.server.goTools, i.server.upstreams.Offers)
}

// Drifts compares the tools of each pinned upstream with the lock file, in the order of the blocks.
// The server must be loaded.
func (i inside) Drifts() []federation.Drift {
	return i.server.upstreams.Drifts(i.server.current.Load().catalog)
}

// Inside is for the command mcpd, like [Server.Inside].
func (s *Snapshot) Inside() insideSnapshot { return insideSnapshot{s} }

type insideSnapshot struct{ snapshot *Snapshot }

// Definitions returns the definitions in the files.
func (i insideSnapshot) Definitions() privdiff.Snapshot { return i.snapshot.catalog.Definitions }

// Upstreams returns the upstream blocks, with resolved paths.
func (i insideSnapshot) Upstreams() []definition.Upstream { return i.snapshot.catalog.Upstreams }
