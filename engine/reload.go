package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// lastLoad is the result of the last load.
type lastLoad struct {
	ok            bool
	err           error
	files         diag.List // diagnostics of the files
	problems      diag.List // the same, with warnings about upstream servers
	sources       catalog.Sources
	loads, failed uint64
	failedAuth    []Auth // auth blocks that could not be applied
}

// Change says which files a reload must read again.
type Change struct {
	// Paths are files, relative to the tools directory, that may have been changed, added or
	// removed.
	Paths []string
	// Config reports that mcpd.hcl may have changed.
	Config bool
	// All reports that anything may have changed.
	All bool
	// Candidate reports that the files replace the serving ones only if they load. If they do not,
	// [Server.Status] still describes the serving ones.
	Candidate bool
}

// Report is the result of a load.
type Report struct {
	// Revision names the snapshot that serves after the load.
	Revision string
	// Problems are all errors and warnings in the files, in stable order.
	Problems diag.List
	// Tests are the results of the tests that gate the load.
	Tests   []TestResult
	sources catalog.Sources
}

// Shown returns the files with Problems by name, for a [diag.Printer], with secret literals masked.
func (r Report) Shown() map[string][]byte { return r.sources.Shown(r.Problems) }

// SecretLiterals returns the literals that [Report.Shown] masks, of all files.
func (r Report) SecretLiterals() []string { return r.sources.SecretLiterals() }

// Load reads all files and publishes a snapshot. Further calls read everything again. If the files
// have errors, Load returns a [diag.List], and the previous snapshot keeps serving.
func (s *Server) Load(ctx context.Context) (Report, error) { return s.Reload(ctx, Change{All: true}) }

// Reload reads the changed files and publishes a snapshot if all files are valid. After an error
// the previous definitions keep serving.
func (s *Server) Reload(ctx context.Context, change Change) (Report, error) {
	s.loading.Lock()
	defer s.loading.Unlock()
	first := s.current.Load() == nil
	report, err := s.reload(ctx, change)
	if err == nil && first {
		_ = s.guard(func() error { // the files are served already
			if s.upstreams.WaitReady(ctx) {
				report.Problems = s.refresh()
				report.Revision = s.current.Load().Revision()
			}
			return nil
		})
	}
	return report, err
}

// reload is Reload with loading held. It also refreshes the offers of upstream servers, even if the
// files have errors. A panic ends no step but its own: before the snapshot is published it fails
// the load, and after that it is logged.
func (s *Server) reload(ctx context.Context, change Change) (report Report, err error) {
	start := s.options.Now()
	before := s.current.Load()
	defer func() { s.settle(err == nil) }()
	next, err := s.prepare(ctx, change, before)
	report, files := next.report, next.report.Problems
	if err != nil {
		return report, err // not an error of the files
	}
	s.loads++
	err = files.Err()
	if err == nil {
		var warnings diag.List
		err = s.guard(func() (err error) {
			warnings, err = s.commit(next.snap, before, change.All)
			return err
		})
		files = slices.Concat(files, warnings, diagnosticsOf(err)).Sort()
	}
	if err == nil {
		report.Problems = slices.Concat(files, next.warnings).Sort()
	} else {
		s.failed++
		report.Problems = files
	}
	failedAuth := authsOf(next.refused)
	s.mu.Lock()
	fixed, previous := err == nil && s.loads > 1 && !s.last.ok, s.last.problems
	if err == nil || before == nil || !change.Candidate {
		s.last = lastLoad{ok: err == nil, err: err, files: files, problems: report.Problems, sources: report.sources, failedAuth: failedAuth}
	}
	s.last.loads, s.last.failed = s.loads, s.failed
	s.mu.Unlock()
	s.reportLoad(before, fixed, err, s.options.Now().Sub(start))
	switch {
	case before == nil: // the caller reports the problems of the first load
	case err == nil:
		catalog.LogNewWarnings(s.options.Logger, report.Problems, previous)
	case s.options.Files.Lock == nil: // else the lock belongs to the files with the error
		s.refresh() // the accepted tools in mcpd.lock may have changed
	}
	if now := s.current.Load(); now != nil {
		report.Revision = now.Revision()
	}
	return report, err
}

// settle tells the builder whether the last build is served.
func (s *Server) settle(ok bool) {
	if now := s.current.Load(); now != nil {
		_ = s.guard(func() error {
			s.builder.BuildServed(ok, now.catalog)
			return nil
		})
	}
}

// prepared is a snapshot that is built but not published.
type prepared struct {
	// report has the diagnostics of the files. If they contain an error, snap is not served.
	report   Report
	snap     *Snapshot
	warnings diag.List         // about upstream servers
	refused  []definition.Auth // auth blocks that could not be applied
}

// prepare builds and checks the next snapshot. The error is not an error of the files: ctx ends the
// tests, or the listen address is in use.
func (s *Server) prepare(ctx context.Context, change Change, before *Snapshot) (next prepared, err error) {
	panicked := s.guard(func() error {
		next, err = s.build(ctx, change, before)
		return nil
	})
	if panicked != nil {
		next.report.Problems, err = diagnosticsOf(panicked), nil
	}
	return next, err
}

// build is prepare without the recovery of a panic.
func (s *Server) build(ctx context.Context, change Change, before *Snapshot) (next prepared, err error) {
	change.All = change.All || before == nil
	built := s.builder.Build(catalog.Change{Paths: change.Paths, Config: change.Config, All: change.All}, s.goTools)
	next = prepared{report: Report{sources: built.Sources, Problems: built.Problems}, refused: built.FailedAuth}
	if built.Problems.HasErrors() {
		return next, nil
	}
	overlaid, warnings := s.overlay(built.Base)
	next.snap, next.warnings = newSnapshot(overlaid, before, s.options.Now()), warnings
	if (overlaid.Reload.RequireTests || s.options.Files.RequireTests) && s.options.Mode.requiresTests() {
		s.builder.Stage(overlaid, s.goTools)
		s.testing.Store(true)
		defer s.testing.Store(false)
		next.report.Tests = s.runTests(ctx, overlaid, tooltest.AtOnce(before != nil), func(i int) bool { return before == nil || !before.catalog.Tested(overlaid, i) })
		if ctx.Err() != nil {
			return next, fmt.Errorf("run tests: %w", ctx.Err())
		}
		next.report.Problems = slices.Concat(built.Problems, testProblems(next.report.Tests)).Sort()
	}
	switch {
	case next.report.Problems.HasErrors():
	case before != nil:
		next.report.Problems = slices.Concat(next.report.Problems, diagnosticsOf(s.checkAudit(overlaid))).Sort()
	case s.options.Front != nil:
		err = s.options.Front.CheckVacant(next.snap.Listen())
	}
	return next, err
}

// guard calls a step of a load, and returns a panic of the step as a [diag.List].
func (s *Server) guard(step func() error) error { return s.builder.Guard(s.options.Logger, step) }

// overlay combines the definitions of files with the current offers of upstream servers.
func (s *Server) overlay(base *catalog.Base) (*catalog.Catalog, diag.List) {
	return s.builder.Overlay(base, s.upstreams.Offers(base.Upstreams, base.SecretKeys))
}

// refresh publishes the serving definitions with the current offers of upstream servers, and
// returns all diagnostics. The caller holds loading, and a snapshot must be serving.
func (s *Server) refresh() diag.List {
	start := s.options.Now()
	before := s.current.Load()
	var warnings diag.List
	err := s.guard(func() error {
		overlaid, found := s.overlay(before.catalog.Base())
		s.publish(newSnapshot(overlaid, before, s.options.Now()), before, false)
		warnings = found
		return nil
	})
	if err != nil { // a warning, as the files did not cause it
		warnings = diagnosticsOf(err)
		warnings[0].Severity, warnings[0].Summary = diag.Warning, "mcpd failed on the offers of an upstream server, which is a bug in mcpd"
		warnings[0].Detail = "report the stack trace in the log"
	}
	s.mu.Lock()
	if s.last.ok { // the last load read the serving files
		s.last.problems = slices.Concat(s.last.files, warnings).Sort()
	}
	problems := s.last.problems
	s.mu.Unlock()
	if s.current.Load() != before {
		s.reportLoad(before, false, nil, s.options.Now().Sub(start))
	}
	return problems
}

// diagnosticsOf returns the diagnostics in an error.
func diagnosticsOf(err error) (problems diag.List) {
	errors.As(err, &problems)
	return problems
}

// commit opens the audit log at the first load, and publishes the snapshot. It returns warnings
// about changes that need a restart.
func (s *Server) commit(snap, before *Snapshot, all bool) (diag.List, error) {
	if before == nil {
		if err := s.openAudit(snap.catalog.Audit); err != nil {
			return nil, err
		}
		s.firstState = snap.catalog.Definitions.Config.State
	}
	warnings := s.warnRestart(snap.catalog)
	s.publish(snap, before, all || before == nil || before.Revision() != snap.Revision())
	return warnings, nil
}

// publish makes snap the serving snapshot, with one pointer store as the last step. If readSecrets
// is set, secrets are read again. A change of upstream servers alone does not set it, and so keeps
// the OAuth tokens. If a step panics, publish restores the state of before.
func (s *Server) publish(snap, before *Snapshot, readSecrets bool) {
	published := false
	defer func() {
		if !published {
			s.restore(before, readSecrets)
		}
	}()
	if readSecrets {
		s.brokers.Secrets.Set(snap.catalog.Secrets)
	}
	s.upstreams.Commit(snap.catalog)
	if before == nil || before.Revision() != snap.Revision() {
		s.adopt(snap)
		s.current.Store(snap)
	}
	published = true
}

// adopt prepares the parts of the server for the calls of a snapshot.
func (s *Server) adopt(snap *Snapshot) {
	c := snap.catalog
	s.builder.MarkServed(c)
	if !s.options.Mode.offline() {
		s.upstreams.SetServers(c)
	}
	if metrics := s.telemetry.metrics; metrics != nil {
		metrics.Publish(snap.metricNames())
	}
	s.limits.SetLimits(slices.Concat(c.RateLimits, c.OwnLimits))
}

// restore undoes the steps of a publish that panicked. Before the first snapshot it closes the audit
// log, so that the next load can open it. Tools that were pinned in the lock file stay pinned.
func (s *Server) restore(before *Snapshot, readSecrets bool) {
	if before == nil {
		s.closeAudit()
		return
	}
	if readSecrets {
		s.brokers.Secrets.Set(before.catalog.Secrets)
	}
	s.adopt(before)
}

// reportLoad logs the result of a load and notifies subscribers. It recovers the panics of
// subscribers and of [Options].OnEvent.
func (s *Server) reportLoad(before *Snapshot, fixed bool, err error, took time.Duration) {
	now := s.current.Load()
	_ = s.guard(func() error {
		s.logLoad(before, now, fixed, err, took)
		return nil
	})
	if before == now {
		return
	}
	_ = s.guard(func() error {
		var changed []string
		if before != nil {
			changed = now.catalog.Changed(before.catalog)
		}
		s.changes.Notify(changed)
		return nil
	})
}

// logLoad logs and counts the result of a load, and sends its event.
func (s *Server) logLoad(before, now *Snapshot, fixed bool, err error, took time.Duration) {
	if metrics := s.telemetry.metrics; metrics != nil {
		metrics.Loaded(catalog.LoadOutcome(before != now, err), took)
	}
	switch {
	case err != nil:
		message := "reload failed"
		if before == nil {
			message = "load failed"
		}
		s.options.Logger.Error(message, slog.String("problems", err.Error()))
		catalog.LogPanics(s.options.Logger, diagnosticsOf(err))
		s.emit(ReloadFailed, took)
	case before == nil:
		s.options.Logger.Info("loaded", now.logAttrs(took)...)
		s.emit(Started, took)
	case before != now || fixed:
		s.options.Logger.Info("reloaded", now.logAttrs(took)...)
		s.emit(Reloaded, took)
	}
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

// currentCatalog returns the catalog of the serving snapshot, for one call.
func (s *Server) currentCatalog(ctx context.Context) (*catalog.Catalog, error) {
	snap, err := s.ensureLoaded(ctx)
	return snap.catalog, err
}

// ensureLoaded returns the serving snapshot, and loads the files if no load has been tried. It
// never returns a nil snapshot.
func (s *Server) ensureLoaded(ctx context.Context) (*Snapshot, error) {
	if snap := s.current.Load(); snap != nil {
		return snap, nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if snap := s.current.Load(); snap != nil {
		return snap, nil
	}
	// Only Load retries a failed first load.
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

// EventKind is the kind of a server event.
type EventKind string

const (
	// Started follows the first successful load.
	Started EventKind = "started"
	// Reloaded follows each later snapshot that differs from the previous one.
	Reloaded EventKind = "reloaded"
	// ReloadFailed means that the files have errors and the previous snapshot keeps serving.
	ReloadFailed EventKind = "reload_failed"
	// Draining means that the server rejects new calls.
	Draining EventKind = "draining"
	// Stopped means that all calls and hooks have ended, or that the grace period is over; see
	// Status.Running.
	Stopped EventKind = "stopped"
)

// Event is passed to [Options].OnEvent, one at a time and in order.
type Event struct {
	Kind EventKind
	// Status is the state of the server after the event.
	Status Status
	// Took is the duration of a load; 0 for other events.
	Took time.Duration
}
