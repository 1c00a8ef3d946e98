package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/lanes"
	"github.com/mcpd/mcpd/internal/state"
)

// Server is the RFC's McpServer (section 7). It is safe for concurrent use.
type Server struct {
	// Fixed at creation.
	options Options
	prefix  string // what call ids begin with
	hooks   *hooks.Runner
	brokers host.Brokers
	states  *state.Lazy

	// current is what serves. It is stored once per load, and loaded once per call.
	current  atomic.Pointer[Snapshot]
	sequence atomic.Uint64
	inFlight lanes.Calls

	calls, failedCalls atomic.Uint64

	// Guarded by loading: one load at a time.
	loading    sync.Mutex
	builder    *catalog.Builder
	registered []*catalog.Item
	loads      uint64
	failed     uint64

	// Guarded by mu.
	mu       sync.Mutex
	last     lastLoad
	watchers map[int]func(changed []string)
	nextID   int

	telling  sync.Mutex // events are told one at a time
	closing  sync.Once
	closeErr error
}

// lastLoad is what the last load found.
type lastLoad struct {
	ok            bool
	err           error
	problems      diag.List
	loads, failed uint64
}

// Change says what a reload has to look at again.
type Change struct {
	// Paths are files of the tools folder, relative to it, that may have
	// changed, come or gone.
	Paths []string
	// Config says that the operator's file may have changed.
	Config bool
	// All says that anything may have changed.
	All bool
}

// Report is what a load found.
type Report struct {
	// Revision names the snapshot that serves after the load.
	Revision string
	// Problems are all mistakes and warnings in the files, in stable order.
	Problems diag.List
	// Sources are the files that were read, by the names that Problems use.
	Sources map[string][]byte
	// Tests are the results of the tests that the load had to pass.
	Tests []TestResult
}

// New returns a server. It reads no files: [Server.Load] does.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	switch {
	case o.Name == "":
		return nil, errors.New("new server: the name is empty")
	case o.Transport != "http" && o.Transport != "stdio":
		return nil, fmt.Errorf("new server: transport %q is neither http nor stdio", o.Transport)
	case slices.ContainsFunc(o.Policies, func(p Policy) bool { return p == nil }):
		return nil, errors.New("new server: a policy is nil")
	case slices.ContainsFunc(o.Hooks, func(h Hook) bool { return h == nil }):
		return nil, errors.New("new server: a hook is nil")
	}
	o.Policies, o.Hooks, o.Vars = slices.Clone(o.Policies), slices.Clone(o.Hooks), maps.Clone(o.Vars)
	s := &Server{options: o, prefix: strconv.FormatUint(rand.Uint64()>>24, 36) + "-", watchers: map[int]func([]string){}}
	store := secrets.New(secrets.Options{LookupEnv: o.LookupEnv})
	s.brokers = host.NewBrokers(store, o.Logger)
	s.states = &state.Lazy{Path: o.StatePath, Optional: o.StateOptional, Options: state.Options{Now: o.Now}, Logger: o.Logger}
	s.hooks = hooks.New(hooks.Options{Executor: o.Executor, Brokers: s.brokers, Now: o.Now})
	s.builder = catalog.New(o.catalog(s.hooks))
	return s, nil
}

// Load reads all files and publishes them. It may be called again, to read
// everything anew. The error is a [diag.List] when the files have mistakes; the
// snapshot from before keeps serving then.
func (s *Server) Load(ctx context.Context) (Report, error) { return s.Reload(ctx, Change{All: true}) }

// Reload reads what the change names, and publishes the result when nothing is
// wrong with it. Any error leaves what serves as it was.
func (s *Server) Reload(ctx context.Context, change Change) (Report, error) {
	s.loading.Lock()
	defer s.loading.Unlock()
	return s.reload(ctx, change)
}

// reload is Reload with loading held.
func (s *Server) reload(ctx context.Context, change Change) (Report, error) {
	began := s.options.Now()
	before := s.current.Load()
	change.All = change.All || before == nil
	built := s.builder.Build(catalog.Change(change), s.registered)
	report := Report{Sources: built.Sources, Problems: built.Problems}
	var snap *Snapshot
	if built.Catalog != nil {
		snap = newSnapshot(built.Catalog, before, s.options.Now())
		if !built.Problems.HasErrors() && built.Catalog.Reload.RequireTests {
			report.Tests = s.runTests(ctx, snap, func(test *hclfile.Test) bool { return before.differs(snap, test) })
			if ctx.Err() != nil {
				return report, fmt.Errorf("run tests: %w", ctx.Err())
			}
			report.Problems = slices.Concat(report.Problems, testProblems(report.Tests)).Sort()
		}
	}
	s.loads++
	err := report.Problems.Err()
	if err == nil {
		s.publish(snap, before, change.All)
	} else {
		s.failed++
	}
	s.mu.Lock()
	mended := err == nil && s.loads > 1 && !s.last.ok
	s.last = lastLoad{ok: err == nil, err: err, problems: report.Problems, loads: s.loads, failed: s.failed}
	s.mu.Unlock()
	if now := s.current.Load(); now != nil {
		report.Revision = now.Revision()
	}
	s.announce(before, mended, err, s.options.Now().Sub(began))
	return report, err
}

// publish makes a snapshot the one that serves, by one pointer store.
// Secrets are read again after a load of everything, whether or not it changed anything.
func (s *Server) publish(snap, before *Snapshot, all bool) {
	if all || before.Revision() != snap.Revision() {
		s.brokers.Secrets.Set(snap.catalog.Secrets)
	}
	if before != nil && before.Revision() == snap.Revision() {
		return
	}
	s.builder.Served()
	s.current.Store(snap)
}

// announce tells the log and listeners how a load ended.
func (s *Server) announce(before *Snapshot, mended bool, err error, took time.Duration) {
	now := s.current.Load()
	switch {
	case err != nil:
		said := "the files have mistakes; nothing was changed"
		if before == nil {
			said = "the files have mistakes; nothing is served"
		}
		s.options.Logger.Error(said, slog.String("problems", err.Error()))
		s.tell(ReloadFailed, took)
	case before == nil:
		s.options.Logger.Info("loaded", now.counted(took)...)
		s.tell(Started, took)
	case before != now || mended:
		s.options.Logger.Info("reloaded", now.counted(took)...)
		s.tell(Reloaded, took)
	}
	if before == now {
		return
	}
	s.mu.Lock()
	watchers := slices.Collect(maps.Values(s.watchers))
	s.mu.Unlock()
	var changed []string
	if before != nil {
		changed = now.catalog.Changed(before.catalog)
	}
	for _, watcher := range watchers {
		watcher(changed)
	}
}

func (s *Server) tell(kind EventKind, took time.Duration) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.options.OnEvent != nil {
		s.options.OnEvent(Event{Kind: kind, Status: s.Status(), Took: took})
	}
}

// loaded returns the snapshot that serves, and loads it first when nothing has
// been loaded yet. It never returns a nil snapshot.
func (s *Server) loaded(ctx context.Context) (*Snapshot, error) {
	if snap := s.current.Load(); snap != nil {
		return snap, nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if snap := s.current.Load(); snap != nil {
		return snap, nil
	}
	// A first load that failed is not tried again by every call: Load does.
	s.mu.Lock()
	err := s.last.err
	s.mu.Unlock()
	if err == nil {
		_, err = s.reload(context.WithoutCancel(ctx), Change{All: true})
	}
	if err != nil {
		return &Snapshot{catalog: &catalog.Catalog{}}, err
	}
	return s.current.Load(), nil
}

// Snapshot returns what serves now; nil before the first successful load.
func (s *Server) Snapshot() *Snapshot { return s.current.Load() }

// Transport returns which transport package serve binds for the server.
func (s *Server) Transport() string { return s.options.Transport }

// Logger returns the server's logger.
func (s *Server) Logger() *slog.Logger { return s.options.Logger }

// Watch calls fn after each published snapshot, until stop is called, with the
// URIs of the resources that are others than before, have come or gone. fn must
// not block and must not call Load or Reload.
func (s *Server) Watch(fn func(changed []string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.watchers[id] = fn
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

// Status returns the state of the server.
func (s *Server) Status() Status {
	status := Status{
		Calls: s.calls.Load(), FailedCalls: s.failedCalls.Load(), Running: int(s.inFlight.Running()),
		HookFailures: s.hooks.Failures(), HookWaits: s.hooks.Waits(), Draining: s.inFlight.Draining(),
	}
	s.mu.Lock()
	status.Synchronized, status.Problems = s.last.ok, slices.Clone(s.last.problems)
	status.Loads, status.FailedLoads = s.last.loads, s.last.failed
	s.mu.Unlock()
	if snap := s.current.Load(); snap != nil {
		status.Revision, status.Since = snap.Revision(), snap.since
		status.Tools, status.Policies, status.Hooks = len(snap.tools), snap.catalog.Policies, len(snap.catalog.Hooks)+len(s.options.Hooks)
		status.Resources, status.Templates, status.Prompts = len(snap.offers[Resources]), len(snap.offers[Templates]), len(snap.offers[Prompts])
	}
	return status
}

// Drain refuses new calls, waits for those that run, and then for their hooks.
// It returns the error of ctx when that is done first.
func (s *Server) Drain(ctx context.Context) error {
	if s.inFlight.StartDrain() {
		s.tell(Draining, 0)
	}
	if err := s.inFlight.Drain(ctx); err != nil {
		return fmt.Errorf("drain: calls still run: %w", err)
	}
	if err := s.hooks.Flush(ctx); err != nil {
		return fmt.Errorf("drain: hooks still run: %w", err)
	}
	return nil
}

// Close drains the server and releases what it holds. No call may follow. A
// second Close returns what the first did.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.closeErr = errors.Join(s.Drain(ctx), s.brokers.Egress.Close(), s.options.Executor.Close(), s.states.Close())
		s.tell(Stopped, 0)
	})
	return s.closeErr
}
