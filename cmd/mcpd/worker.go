package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/internal/process/supervisor"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// workerVerb is the verb by which mcpd starts itself to do what could end or
// hang a process.
const workerVerb = "worker"

func newWorker(e env) *cobra.Command {
	return &cobra.Command{
		Use:    workerVerb,
		Short:  "Compile and run bodies for another mcpd, which starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := worker.Main(e.stdin, e.stdout, typescript.Transpiler()); err != nil {
				return findings("%v", err)
			}
			return nil
		},
	}
}

// trial compiles large bodies in processes of their own, which end when this
// one does.
func trial(e env, logger *slog.Logger) func(scripting.Source) error {
	if e.process.executable == "" {
		return nil
	}
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(e.stderr, nil))
	}
	return wherePossible(worker.NewPool(e.process.executable, e.process.arg0, workerVerb).Try, logger)
}

// wherePossible tries bodies. On a system where no process can be started it
// says so and lets them be compiled here; where it could before, one that
// cannot be tried is refused, since who uses up the system's processes or files
// must not get around a trial.
func wherePossible(try func(scripting.Source) error, logger *slog.Logger) func(scripting.Source) error {
	var possible atomic.Bool
	return func(src scripting.Source) error {
		err := try(src)
		if err == nil || errors.Is(err, worker.ErrLost) {
			possible.Store(true)
			return err
		}
		if possible.Load() {
			return err
		}
		logger.Warn("a body is compiled without a trial, since no process can be started for it", slog.String("name", src.Name), slog.String("error", err.Error()))
		return nil
	}
}

// The values of --executor.
const (
	executorWorker = "worker"
	executorInline = "inline"
)

// executor returns what runs bodies, and of processes of their own, which have
// the options, what confines them. Where there can be none it tells the logger
// so, and bodies run in this one, and programs of agents nowhere.
func executor(e env, kind string, o worker.Options, logger *slog.Logger) (scripting.Executor, worker.Report) {
	if kind == executorInline {
		return scripting.Inline(), nil
	}
	x, report, err := apart(e, o)
	if err != nil {
		logger.Warn("bodies run in this process, which one of them can bring down, and programs of agents are refused, since there can be no other for them", slog.String("error", err.Error()))
		return scripting.Inline(), nil
	}
	return x, report
}

// probeTimeout is how long a process may take to say what confines it.
const probeTimeout = 20 * time.Second

// apart returns an executor with processes of their own, once one of them has
// said that it can do its work and what confines it: where none can, every
// call would fail as if it had brought its process down.
func apart(e env, o worker.Options) (scripting.Executor, worker.Report, error) {
	if e.process.executable == "" {
		return nil, nil, errors.New("mcpd cannot find its own program, which it does by /proc on Linux")
	}
	return e.executables.startWorkers(o, e.process.executable, e.process.arg0, workerVerb)
}

// startWorkers returns an executor whose processes can do their work, and what confines them.
func startWorkers(o worker.Options, path string, argv ...string) (scripting.Executor, worker.Report, error) {
	x, err := worker.NewExecutor(o, path, argv...)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	report, err := x.Report(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	return x, report, nil
}

// tellConfinement logs what confines the processes that run bodies or programs, and warns
// of what is missing.
func tellConfinement(what string, report worker.Report, logger *slog.Logger) {
	switch {
	case report == nil:
	case report.Complete():
		logger.Info(what+" run in processes of their own", slog.String("confined by", report.String()))
	default:
		logger.Warn(what+" are not fully confined", slog.String("missing", report.Missing()), slog.String("confined by", report.Confining()))
	}
}

// programs runs the programs of agents in processes of their own, for a server whose bodies
// run in its own: it trusts its files, and no agent. Nothing of that is begun before the
// first program comes.
type programs struct {
	// fixed at creation
	env    env
	logger *slog.Logger

	// guarded by mu
	mu     sync.Mutex
	last   *attempt // or nil
	closed bool
}

// newPrograms returns what runs programs beside an executor of bodies of this kind; nil where
// that one does.
func newPrograms(e env, kind string, logger *slog.Logger) scripting.Executor {
	if kind != executorInline {
		return nil
	}
	return &programs{env: e, logger: logger}
}

// attempt is one to have processes for programs. What it came to is known once done is closed.
type attempt struct {
	done     chan struct{}
	executor scripting.Executor
	err      error
}

// errProgramsClosed is of a program that comes behind the end of the server.
var errProgramsClosed = errors.New("no program is run any more")

func (p *programs) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	a, err := p.begin()
	if err != nil {
		return scripting.Outcome{}, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return scripting.Outcome{}, ctx.Err()
	}
	if a.err != nil {
		return scripting.Outcome{}, a.err
	}
	return a.executor.Run(ctx, c, h)
}

// begin returns the attempt that all programs wait for; a new one where the last has failed.
func (p *programs) begin() (*attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errProgramsClosed
	}
	if p.last != nil && (!p.last.over() || p.last.err == nil) {
		return p.last, nil
	}
	a := &attempt{done: make(chan struct{})}
	p.last = a
	go func() {
		defer close(a.done)
		var report worker.Report
		if a.executor, report, a.err = apart(p.env, worker.Options{Logger: p.logger}); a.err == nil {
			tellConfinement("programs of agents", report, p.logger)
		}
	}()
	return a, nil
}

// over reports whether it is known what the attempt came to.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (p *programs) Workers() scripting.Workers {
	p.mu.Lock()
	a := p.last
	p.mu.Unlock()
	if a == nil || !a.over() {
		return scripting.Workers{}
	}
	staffed, ok := a.executor.(scripting.Staffed)
	if !ok {
		return scripting.Workers{}
	}
	return staffed.Workers()
}

func (p *programs) Close() error {
	p.mu.Lock()
	p.closed = true
	a := p.last
	p.mu.Unlock()
	if a == nil {
		return nil
	}
	if <-a.done; a.err != nil {
		return nil // it was told to the programs
	}
	return a.executor.Close()
}

// superviseVerb is the verb by which mcpd starts itself to run a program of an
// exec grant.
const superviseVerb = "supervise"

// supervise returns the command that runs a program, nil where there is none.
func supervise(e env) []string {
	if e.process.executable == "" {
		return nil
	}
	return []string{e.process.executable, e.process.arg0, superviseVerb}
}

func newSupervise(e env) *cobra.Command {
	return &cobra.Command{
		Use:    superviseVerb,
		Short:  "Run a program for another mcpd, which starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := supervisor.Main(e.stdin); err != nil {
				return findings("%v", err)
			}
			return nil
		},
	}
}
