package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/report"
	"github.com/mcpd/mcpd/internal/ops/systemd"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

// runningServer is a running server with its controls: signals, the control socket and the
// service manager.
type runningServer struct {
	// fixed at creation
	env     env
	flags   *serveFlags
	logger  *slog.Logger
	server  *engine.Server
	report  worker.Report // sandbox of the worker processes
	began   time.Time
	manager *systemd.Notifier
	pulse   time.Duration // interval of watchdog notifications; 0 for none
	control *control.Server
	// keySecret hides keys of limits that may contain arguments; see keyHash.
	keySecret string

	// fixed before requests are answered
	front   *serve.Front
	reports *report.Reporter

	recorded    testNames
	history     recorder
	detachments detachments

	// reloading serializes reloads, so that the service manager gets one at a time.
	reloading sync.Mutex

	// accepting serializes changes of the lock file by the console.
	accepting sync.Mutex

	// auditReads has a value for each request that reads the audit log; its capacity is maxAuditReads.
	auditReads chan struct{}

	// replaying is held during a replay of an edit.
	replaying sync.Mutex

	// guarded by mu
	mu       sync.Mutex
	listener string // address for clients; empty before the server listens
}

// operate returns the running server of a loaded server. The caller must close it.
func (f *serveFlags) operate(e env, logger *slog.Logger, s *engine.Server, report worker.Report) (*runningServer, error) {
	o := &runningServer{env: e, flags: f, logger: logger, server: s, report: report, began: time.Now(), keySecret: rand.Text(), history: recorder{wake: make(chan struct{}, 1)}, auditReads: make(chan struct{}, maxAuditReads)}
	var err error
	if o.manager, err = systemd.New(e.service.manager); err != nil {
		return nil, usageError("%v", err)
	}
	if o.pulse, err = e.service.manager.WatchdogInterval(e.process.pid); err != nil {
		return nil, usageError("%v", err)
	}
	s.Inside().States().Describe(o.describe)
	return o, o.listen()
}

// listen opens the control socket. A socket named by --control is required; the default
// one is optional.
func (o *runningServer) listen() error {
	path := o.flags.control.path(o.env, &o.flags.files)
	if path == "" {
		return nil
	}
	var err error
	o.control, err = control.Listen(path)
	switch {
	case err == nil:
		return nil
	case o.flags.control.value != "":
		return startExitError(err)
	case errors.Is(err, syscall.EADDRINUSE):
		o.logger.Info("control socket in use by another server of these files", slog.String("cause", err.Error()))
	default:
		o.logger.Warn("open control socket", slog.String("error", err.Error()))
	}
	return nil
}

func (o *runningServer) close() error {
	if o.control == nil {
		return nil
	}
	return o.control.Close()
}

// run reloads changed files, answers control requests and sends watchdog notifications
// until stop is called. It stops watching files when ctx is done, if that is sooner.
func (o *runningServer) run(ctx context.Context, watcher *watch.Watcher, hup <-chan os.Signal) (stop func()) {
	var busy sync.WaitGroup
	watching, stopWatching := context.WithCancel(ctx)
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	busy.Go(func() {
		if err := watcher.Run(watching); err != nil {
			o.logger.Error("watch files", slog.String("error", err.Error()))
		}
	})
	if o.control != nil { // it answers requests for the history
		o.history.inUse = o.flags.stateExists(o.env, o.server)
		o.noteRevision() // before the first reload
		busy.Go(func() { o.recordHistory(living) })
	}
	busy.Go(func() { o.follow(watching, watcher.Changes(), hup) })
	if follower := o.flags.bundle.follower; follower != nil {
		busy.Go(func() { follower.Run(watching, o.activate) })
	}
	var unwatch func()
	o.reports, unwatch = o.reporter()
	busy.Go(func() {
		defer unwatch()
		o.reports.Run(living)
	})
	busy.Go(func() { o.flags.dev.run(watching, o) }) // its console answers requests
	busy.Go(func() { osproc.TrimIdle(living, o.activity) })
	if o.control != nil {
		busy.Go(func() { o.control.Serve(living, o.answer) })
	}
	if o.manager != nil && o.pulse > 0 {
		busy.Go(func() {
			systemd.Watchdog{Interval: o.pulse, Check: o.server.Probe, Notify: o.manager.Watchdog, Logger: o.logger}.Run(living)
		})
	}
	busy.Go(func() {
		select {
		case <-ctx.Done():
		case <-living.Done(): // the client of stdio disconnected, or serving failed
		}
		o.logNotifyError(o.manager.Stopping("shutting down"))
	})
	return func() {
		stopWatching()
		end()
		busy.Wait()
	}
}

// activity returns a number that each call and each load changes.
func (o *runningServer) activity() uint64 {
	status := o.server.Status()
	return uint64(status.Calls) + uint64(status.Loads)
}

// onReady records that clients can connect at the address where.
func (o *runningServer) onReady(where string) {
	o.mu.Lock()
	o.listener = where
	o.mu.Unlock()
	o.server.MarkReady()
	o.logNotifyError(o.manager.Ready(o.line()))
}

// authRetryInterval is the interval of checks whether rejected auth blocks have become valid.
const authRetryInterval = time.Second / 2

// follow reloads changed files, and all files at SIGHUP, until ctx is done. The watcher
// does not cover the files that auth blocks name: authenticators poll the files of
// blocks in use, and follow polls the files of rejected blocks.
func (o *runningServer) follow(ctx context.Context, changes <-chan watch.Change, hup <-chan os.Signal) {
	again := time.NewTicker(authRetryInterval)
	defer again.Stop()
	for {
		var change engine.Change
		select {
		case <-ctx.Done():
			return
		case <-hup:
			change.All = true
		case seen, ok := <-changes:
			if !ok {
				changes = nil
				continue
			}
			if !o.server.Snapshot().AutoReload() {
				continue
			}
			change = o.flags.files.changeOf(o.env, seen)
		case <-again.C:
			if !o.server.Snapshot().AutoReload() || !o.server.AuthsUsable() {
				continue
			}
			change.Config = true
		}
		before := o.server.Status().Revision
		_, _, err := o.reload(ctx, change) // reload reported the result
		if change.All && err == nil && o.server.Status().Revision == before {
			o.server.Logger().Info("reload found no changes")
		}
	}
}

// reload reloads the files and reports the result to the log, to the terminal and to
// the service manager. For a server with --bundle it also begins a check of the source, and checked
// is closed after that; otherwise checked is nil.
func (o *runningServer) reload(ctx context.Context, change engine.Change) (report engine.Report, checked <-chan struct{}, err error) {
	o.reloading.Lock()
	defer o.reloading.Unlock()
	follower := o.flags.bundle.follower
	change.All = change.All || follower != nil // the last load may have read another bundle, which was refused
	if report, err = o.reloadLocked(ctx, change); follower != nil {
		checked = follower.Check()
	}
	return report, checked, err
}

// reloadLocked is reload with reloading held.
func (o *runningServer) reloadLocked(ctx context.Context, change engine.Change) (engine.Report, error) {
	o.logNotifyError(o.manager.Reloading())
	report, err := o.server.Reload(ctx, change)
	switch {
	case o.flags.dev != nil:
		o.flags.dev.loaded(change, report, err)
	case err != nil && !o.flags.log.forMachines():
		_ = printProblems(o.env, report)
	}
	if err == nil && o.control != nil {
		o.noteRevision()
	}
	o.logNotifyError(o.manager.Ready(o.line()))
	return report, err
}

func (o *runningServer) line() string {
	status := o.front.Status()
	if health := o.health(status); health != "healthy" {
		return health
	}
	return fmt.Sprintf("serving %s, revision %s", offered(status), status.Revision[:12])
}

// logNotifyError logs a failed notification of the service manager.
func (o *runningServer) logNotifyError(err error) {
	if err != nil {
		o.logger.Warn("notify service manager", slog.String("error", err.Error()))
	}
}
