package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/systemd"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

// operation is a server while it runs, as those see it who look after it: the
// operator, by signals and the control socket, and the service manager.
type operation struct {
	// fixed at creation
	env     env
	flags   *serveFlags
	logger  *slog.Logger
	server  *engine.Server
	report  worker.Report // what confines the processes of bodies
	began   time.Time
	manager *systemd.Notifier
	pulse   time.Duration // how often the manager wants to hear something; 0 for never
	control *control.Server

	// fixed before requests are answered
	front *serve.Front

	// reloading is held by the reload under way: the manager hears of one at a time.
	reloading sync.Mutex

	// guarded by mu
	mu       sync.Mutex
	listener string // where clients come in; empty before they can
}

// operate returns the operation of a server that is loaded. Its close must follow.
func (f *serveFlags) operate(e env, logger *slog.Logger, s *engine.Server, report worker.Report) (*operation, error) {
	o := &operation{env: e, flags: f, logger: logger, server: s, report: report, began: time.Now()}
	var err error
	if o.manager, err = systemd.New(e.manager); err != nil {
		return nil, usage("%v", err)
	}
	if o.pulse, err = e.manager.Every(e.pid); err != nil {
		return nil, usage("%v", err)
	}
	return o, o.listen()
}

// listen makes the control socket. One that the user has named must be had; the
// one in the user's own folder need not.
func (o *operation) listen() error {
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
		return unstarted(err)
	case errors.Is(err, syscall.EADDRINUSE):
		o.logger.Info("mcpd status, reload and token ask another server of these files", slog.String("cause", err.Error()))
	default:
		o.logger.Warn("mcpd status, reload and token cannot ask this server; name a socket with --control, or --control off", slog.String("error", err.Error()))
	}
	return nil
}

func (o *operation) close() error {
	if o.control == nil {
		return nil
	}
	return o.control.Close()
}

// run does all that goes on beside serving: it reloads what changes, answers
// requests, and tells the manager that the server is alive, until stop is called.
// Files are followed until ctx is done, if that is sooner.
func (o *operation) run(ctx context.Context, watcher *watch.Watcher, hup <-chan os.Signal) (stop func()) {
	var busy sync.WaitGroup
	watching, stopWatching := context.WithCancel(ctx)
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	busy.Go(func() {
		if err := watcher.Run(watching); err != nil {
			o.logger.Error("files are no longer watched", slog.String("error", err.Error()))
		}
	})
	busy.Go(func() { o.follow(watching, watcher.Changes(), hup) })
	if o.control != nil {
		busy.Go(func() { o.control.Serve(living, o.answer) })
	}
	if o.manager != nil && o.pulse > 0 {
		busy.Go(func() {
			systemd.Pulse{Every: o.pulse, Check: o.server.Probe, Beat: o.manager.Alive, Logger: o.logger}.Run(living)
		})
	}
	busy.Go(func() {
		select {
		case <-ctx.Done():
		case <-living.Done(): // the client of stdio has left, or serving has failed
		}
		o.tell(o.manager.Stopping("shutting down"))
	})
	return func() {
		stopWatching()
		end()
		busy.Wait()
	}
}

// opened says that clients can come in now.
func (o *operation) opened(where string) {
	o.mu.Lock()
	o.listener = where
	o.mu.Unlock()
	o.server.MarkReady()
	o.tell(o.manager.Ready(o.line()))
}

// lookAgain is how often it is looked whether auth blocks that were refused can be applied.
const lookAgain = time.Second / 2

// follow reloads what changes on disk, and everything at SIGHUP, until ctx is done. The
// files that auth blocks name are not watched: servers look at those of the blocks that
// they have. Those of blocks that were refused are looked at here.
func (o *operation) follow(ctx context.Context, changes <-chan watch.Change, hup <-chan os.Signal) {
	again := time.NewTicker(lookAgain)
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
			change = o.flags.changeOf(seen)
		case <-again.C:
			if !o.server.Snapshot().AutoReload() || !o.server.AuthsUsable() {
				continue
			}
			change.Config = true
		}
		before := o.server.Status().Revision
		_, err := o.reload(ctx, change) // it has been said how it ended, unless nothing came of it
		if change.All && err == nil && o.server.Status().Revision == before {
			o.server.Logger().Info("all files are as they were")
		}
	}
}

// reload reloads, and says to the log, to people who read that, and to the manager
// how it ended.
func (o *operation) reload(ctx context.Context, change engine.Change) (engine.Report, error) {
	o.reloading.Lock()
	defer o.reloading.Unlock()
	o.tell(o.manager.Reloading())
	report, err := o.server.Reload(ctx, change)
	if err != nil && !o.flags.log.forMachines() {
		_ = printProblems(o.env, report)
	}
	o.tell(o.manager.Ready(o.line()))
	return report, err
}

func (o *operation) line() string {
	status := o.front.Status()
	if health := status.Health(); !status.Healthy() {
		return health
	}
	return fmt.Sprintf("serving %s, revision %s", offered(status), status.Revision[:12])
}

// tell logs that the manager could not be told something.
func (o *operation) tell(err error) {
	if err != nil {
		o.logger.Warn("the service manager does not hear how the server is", slog.String("error", err.Error()))
	}
}
