package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// lastLoad is what the last load found.
type lastLoad struct {
	ok            bool
	err           error
	files         diag.List // what is wrong with the files
	problems      diag.List // the same, with warnings of what upstream servers offer
	sources       catalog.Sources
	loads, failed uint64
	failedAuth    []Auth // auth blocks that could not be applied
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
	// Tests are the results of the tests that the load had to pass.
	Tests   []TestResult
	sources catalog.Sources
}

// Shown returns the files with problems, by the names that Problems use, for a
// [diag.Printer]: literals where secrets belong are masked.
func (r Report) Shown() map[string][]byte { return r.sources.Shown(r.Problems) }

// Load reads all files and publishes them. It may be called again, to read
// everything anew. The error is a [diag.List] when the files have mistakes; the
// snapshot from before keeps serving then.
func (s *Server) Load(ctx context.Context) (Report, error) { return s.Reload(ctx, Change{All: true}) }

// Reload reads what the change names, and publishes the result when nothing is
// wrong with it. Any error leaves what the files define as it was.
func (s *Server) Reload(ctx context.Context, change Change) (Report, error) {
	s.loading.Lock()
	defer s.loading.Unlock()
	first := s.current.Load() == nil
	report, err := s.reload(ctx, change)
	if err == nil && first && s.upstreams.Settle(ctx) {
		report.Problems = s.refresh()
		report.Revision = s.current.Load().Revision()
	}
	return report, err
}

// reload is Reload with loading held. What upstream servers offer now is laid over the files
// that serve then, whether or not these are new.
func (s *Server) reload(ctx context.Context, change Change) (Report, error) {
	began := s.options.Now()
	before := s.current.Load()
	next, err := s.prepare(ctx, change, before)
	report, files, snap := next.report, next.report.Problems, next.snap
	if err != nil {
		return report, err
	}
	err = files.Err()
	if err == nil && before != nil {
		err = s.checkAudit(snap.catalog)
		files = slices.Concat(files, diagnosticsOf(err)).Sort()
	}
	if err == nil && before == nil && s.options.Front != nil {
		if err := s.options.Front.CheckVacant(snap.Listen()); err != nil {
			return report, err // which is no fault of the files
		}
	}
	s.loads++
	if err == nil && before == nil {
		err = s.openAudit(snap.catalog.Audit)
		files = slices.Concat(files, diagnosticsOf(err)).Sort()
	}
	if err == nil {
		files = slices.Concat(files, s.warnAuditChange(snap.catalog.Audit)).Sort()
		s.publish(snap, before, change.All || before == nil || before.Revision() != snap.Revision())
		report.Problems = slices.Concat(files, next.warnings).Sort()
	} else {
		s.failed++
		report.Problems = files
	}
	s.mu.Lock()
	mended, told := err == nil && s.loads > 1 && !s.last.ok, s.last.problems
	s.last = lastLoad{ok: err == nil, err: err, files: files, problems: report.Problems, sources: report.sources, loads: s.loads, failed: s.failed, failedAuth: authsOf(next.refused)}
	s.mu.Unlock()
	if now := s.current.Load(); now != nil {
		report.Revision = now.Revision()
	}
	s.reportLoad(before, mended, err, s.options.Now().Sub(began))
	switch {
	case before == nil: // what is wrong at the start is for its caller to tell
	case err == nil:
		s.logWarnings(report.Problems, told)
	default:
		s.refresh() // with what mcpd.lock accepts now
		report.Revision = s.current.Load().Revision()
	}
	return report, err
}

// prepared is a snapshot that is built and not published.
type prepared struct {
	// report has the diagnostics of the files. If they hold an error, snap is not served.
	report   Report
	snap     *Snapshot
	warnings diag.List         // about upstream servers
	refused  []definition.Auth // auth blocks that could not be applied
}

// prepare builds the next snapshot. The error says that ctx ended the tests. A panic becomes
// a diagnostic: it ends the load, and not the process.
func (s *Server) prepare(ctx context.Context, change Change, before *Snapshot) (next prepared, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			next.report.Problems, err = s.recovered(cause), nil
		}
	}()
	change.All = change.All || before == nil
	built := s.builder.Build(catalog.Change(change), s.goTools)
	next = prepared{report: Report{sources: built.Sources, Problems: built.Problems}, refused: built.Refused}
	if built.Problems.HasErrors() {
		return next, nil
	}
	laid, warnings := s.overlay(built.Base)
	next.snap, next.warnings = newSnapshot(laid, before, s.options.Now()), warnings
	if laid.Reload.RequireTests {
		s.builder.Stage(laid, s.goTools)
		next.report.Tests = s.runTests(ctx, laid, func(i int) bool { return before == nil || !before.catalog.Tested(laid, i) })
		if ctx.Err() != nil {
			return next, fmt.Errorf("run tests: %w", ctx.Err())
		}
		next.report.Problems = slices.Concat(built.Problems, testProblems(next.report.Tests)).Sort()
	}
	return next, nil
}

// recovered logs a panic of a load and returns its diagnostic. Neither holds the value of the
// panic, which may quote a file. The builder starts over: the panic may have left its caches
// half written.
func (s *Server) recovered(cause any) diag.List {
	stack := debug.Stack()
	if worker, ok := cause.(*loader.WorkerPanic); ok {
		stack = worker.Stack
	}
	s.options.Logger.Error("panic while loading", slog.String("stack", string(stack)))
	s.builder.Reset()
	return diag.List{{
		Severity: diag.Error, Code: "file-internal", Summary: "mcpd fails on these files, which is an error in mcpd",
		Detail: "undo the last change to the files, and report the stack in the log to the makers of mcpd",
	}}
}

// lay lays what upstream servers offer now over what files define.
func (s *Server) overlay(base *catalog.Base) (*catalog.Catalog, diag.List) {
	return s.builder.Overlay(base, s.upstreams.Offered(base.Upstreams, base.SecretKeys))
}

// refresh publishes what upstream servers offer now over the files that serve, whatever the
// files say by now, and returns all that there is to tell of both. Its caller holds loading,
// and something serves.
func (s *Server) refresh() diag.List {
	began := s.options.Now()
	before := s.current.Load()
	next, warnings := s.overlaid(before)
	s.publish(next, before, false)
	s.mu.Lock()
	if s.last.ok { // and the files are those that serve
		s.last.problems = slices.Concat(s.last.files, warnings).Sort()
	}
	problems := s.last.problems
	s.mu.Unlock()
	if s.current.Load() != before {
		s.reportLoad(before, false, nil, s.options.Now().Sub(began))
	}
	return problems
}

// relaid returns the snapshot that serves with what upstream servers offer now. After a panic
// it returns before, and the diagnostic as a warning: the files have no part in it.
func (s *Server) overlaid(before *Snapshot) (next *Snapshot, warnings diag.List) {
	defer func() {
		if cause := recover(); cause != nil {
			next, warnings = before, s.recovered(cause)
			warnings[0].Severity, warnings[0].Summary = diag.Warning, "mcpd fails on the offers of an upstream server, which is an error in mcpd"
			warnings[0].Detail = "report the stack in the log to the makers of mcpd"
		}
	}()
	laid, warnings := s.overlay(before.catalog.Base())
	return newSnapshot(laid, before, s.options.Now()), warnings
}

// problemsOf returns the diagnostics that an error is made of.
func diagnosticsOf(err error) (problems diag.List) {
	errors.As(err, &problems)
	return problems
}

// publish makes a snapshot the one that serves, by one pointer store. Secrets are read again
// after a load of everything, whether or not it changed anything, and where files have
// changed anything. What servers change themselves costs nobody a token.
func (s *Server) publish(snap, before *Snapshot, readSecrets bool) {
	if readSecrets {
		s.brokers.Secrets.Set(snap.catalog.Secrets)
	}
	s.upstreams.Served(snap.catalog)
	if before != nil && before.Revision() == snap.Revision() {
		return
	}
	s.builder.Served(snap.catalog)
	s.setCurrent(snap)
	s.limits.Keep(slices.Concat(snap.catalog.RateLimits, snap.catalog.OwnLimits))
}

// serve has a snapshot serve.
func (s *Server) setCurrent(snap *Snapshot) {
	s.current.Store(snap)
	if !s.options.Mode.offline() {
		s.upstreams.Keep(snap.catalog)
	}
	if metrics := s.telemetry.metrics; metrics != nil {
		metrics.Publish(snap.metricNames())
	}
}

// announce tells the log and listeners how a load ended.
func (s *Server) reportLoad(before *Snapshot, mended bool, err error, took time.Duration) {
	now := s.current.Load()
	if metrics := s.telemetry.metrics; metrics != nil {
		metrics.Loaded(loadOutcome(before, now, err), took)
	}
	switch {
	case err != nil:
		said := "the files have mistakes; nothing was changed"
		if before == nil {
			said = "the files have mistakes; nothing is served"
		}
		s.options.Logger.Error(said, slog.String("problems", err.Error()))
		s.emit(ReloadFailed, took)
	case before == nil:
		s.options.Logger.Info("loaded", now.logAttrs(took)...)
		s.emit(Started, took)
	case before != now || mended:
		s.options.Logger.Info("reloaded", now.logAttrs(took)...)
		s.emit(Reloaded, took)
	}
	if before == now {
		return
	}
	var changed []string
	if before != nil {
		changed = now.catalog.Changed(before.catalog)
	}
	s.subscribers.notify(changed)
}

// outcomeOf says for metrics what came of a load.
func loadOutcome(before, now *Snapshot, err error) string {
	switch {
	case err != nil:
		return "failed"
	case before == now:
		return "unchanged"
	}
	return "published"
}

func (s *Server) emit(kind EventKind, took time.Duration) {
	s.eventMu.Lock()
	defer s.eventMu.Unlock()
	if s.ready {
		s.recordServerEvent(kind, s.Status().Revision)
	}
	if s.options.OnEvent != nil {
		s.options.OnEvent(Event{Kind: kind, Status: s.Status(), Took: took})
	}
}

// serving is the catalog of the snapshot that serves, for one call.
func (s *Server) currentCatalog(ctx context.Context) (*catalog.Catalog, error) {
	snap, err := s.ensureLoaded(ctx)
	return snap.catalog, err
}

// loaded returns the snapshot that serves, and loads it first when nothing has
// been loaded yet. It never returns a nil snapshot.
func (s *Server) ensureLoaded(ctx context.Context) (*Snapshot, error) {
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

// maxWarned bounds the warnings that the log has of one load.
const maxLoggedWarnings = 20

// warning is what makes a warning the same as one before: it may stand on another line.
type warningKey struct{ file, code, summary string }

// warn logs what a load warns of and the one before did not: who watches the log and not the
// files is to see that a rule has come to hold for nothing.
func (s *Server) logWarnings(problems, before diag.List) {
	told := map[warningKey]bool{}
	for _, p := range before {
		told[warningKey{p.Range.File, p.Code, p.Summary}] = true
	}
	count := 0
	for _, p := range problems {
		w := warningKey{p.Range.File, p.Code, p.Summary}
		if p.Severity != diag.Warning || p.Code == catalog.Quarantined || told[w] {
			continue
		}
		told[w] = true
		if count++; count > maxLoggedWarnings {
			continue
		}
		attributes := []any{slog.String("at", p.Range.String()), slog.String("warning", p.Summary)}
		if p.Detail != "" {
			attributes = append(attributes, slog.String("advice", p.Detail))
		}
		s.options.Logger.Warn("the files have a warning", attributes...)
	}
	if count > maxLoggedWarnings {
		s.options.Logger.Warn("the files have more warnings; mcpd status shows them", slog.Int("more", count-maxLoggedWarnings))
	}
}

// EventKind says what happened to a server.
type EventKind string

const (
	// Started follows the first successful load.
	Started EventKind = "started"
	// Reloaded follows each later snapshot that differs from the one before.
	Reloaded EventKind = "reloaded"
	// ReloadFailed says that files have mistakes and the old snapshot keeps serving.
	ReloadFailed EventKind = "reload_failed"
	// Draining says that no new calls are taken.
	Draining EventKind = "draining"
	// Stopped says that the last call has ended and all hooks have run, or that
	// the grace period is over: Status.Running tells.
	Stopped EventKind = "stopped"
)

// Event is told to [Options].OnEvent, one at a time, in order.
type Event struct {
	Kind EventKind
	// Status is the state of the server after the event.
	Status Status
	// Took is how long a load took; 0 for other events.
	Took time.Duration
}
