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

// workerVerb is the verb of the worker process, which runs what could crash or block a
// process.
const workerVerb = "worker"

func newWorker(e env) *cobra.Command {
	return &cobra.Command{
		Use:    workerVerb,
		Short:  "Compile and run scripts for the mcpd that starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := worker.Main(e.stdin, e.stdout, typescript.Transpiler()); err != nil {
				return findingsError("%v", err)
			}
			return nil
		},
	}
}

// compileCheck returns a function that test-compiles large scripts in separate processes.
// These end with this process.
func compileCheck(e env, logger *slog.Logger) func(scripting.Source) error {
	if e.process.executable == "" {
		return nil
	}
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(e.stderr, nil))
	}
	return compileCheckIfAvailable(worker.NewPool(e.process.executable, e.process.arg0, workerVerb).Try, logger)
}

// compileCheckIfAvailable wraps try for systems that cannot start processes. If the first trials
// cannot start a process, it logs a warning and accepts the script. After one
// successful start it rejects a script that cannot be tried: exhausting processes or
// files must not bypass the trial.
func compileCheckIfAvailable(try func(scripting.Source) error, logger *slog.Logger) func(scripting.Source) error {
	var possible atomic.Bool
	return func(src scripting.Source) error {
		err := try(src)
		if err == nil || errors.Is(err, worker.ErrProcessDied) {
			possible.Store(true)
			return err
		}
		if possible.Load() {
			return err
		}
		logger.Warn("compile script without trial: cannot start a process", slog.String("name", src.Name), slog.String("error", err.Error()))
		return nil
	}
}

// Values of --executor.
const (
	executorWorker = "worker"
	executorInline = "inline"
)

// executor returns the executor for scripts and the sandbox of its processes. If no
// process can be started, it logs a warning and returns the inline executor; agent code
// is then rejected.
func executor(e env, kind string, o worker.Options, logger *slog.Logger) (scripting.Executor, worker.Report) {
	if kind == executorInline {
		return scripting.Inline(), nil
	}
	x, report, err := newWorkerExecutor(e, o)
	if err != nil {
		logger.Warn("start worker processes: running scripts inline, rejecting agent code", slog.String("error", err.Error()))
		return scripting.Inline(), nil
	}
	return x, report
}

// probeTimeout is the timeout for the first sandbox report of a worker process.
const probeTimeout = 20 * time.Second

// newWorkerExecutor returns an executor with worker processes, after one of them reported its
// sandbox. If none can start, every call would fail.
func newWorkerExecutor(e env, o worker.Options) (scripting.Executor, worker.Report, error) {
	if e.process.executable == "" {
		return nil, nil, errors.New("cannot find the mcpd executable (on Linux, /proc must be mounted)")
	}
	return e.executables.startWorkers(o, e.process.executable, e.process.arg0, workerVerb)
}

// startWorkers returns an executor with working processes, and their sandbox.
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

// logSandbox logs the sandbox of worker processes. It warns of missing parts.
func logSandbox(workload string, report worker.Report, logger *slog.Logger) {
	switch {
	case report == nil:
	case report.Complete():
		logger.Info("sandbox complete", slog.String("workload", workload), slog.String("confined_by", report.String()))
	default:
		logger.Warn("sandbox incomplete", slog.String("workload", workload), slog.String("missing", report.Missing()), slog.String("confined_by", report.Confining()))
	}
}

// codeExecutor runs agent code in worker processes for a server with the inline executor:
// it trusts its files, but not agents. It starts nothing before the first program.
type codeExecutor struct {
	// fixed at creation
	env    env
	logger *slog.Logger

	// guarded by mu
	mu     sync.Mutex
	last   *executorStart // latest start; nil before the first
	closed bool
}

// newPrograms returns the executor for agent code, or nil if the executor of this kind
// runs it too.
func newPrograms(e env, kind string, logger *slog.Logger) scripting.Executor {
	if kind != executorInline {
		return nil
	}
	return &codeExecutor{env: e, logger: logger}
}

// executorStart is one start of worker processes. executor and err are valid after done is
// closed.
type executorStart struct {
	done     chan struct{}
	executor scripting.Executor
	err      error
}

// errProgramsClosed is the error of a program after Close.
var errProgramsClosed = errors.New("the server is shutting down")

func (p *codeExecutor) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	a, err := p.startAttempt()
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

// startAttempt returns the attempt that programs wait for, a new one if the last one failed.
func (p *codeExecutor) startAttempt() (*executorStart, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errProgramsClosed
	}
	if p.last != nil && (!p.last.over() || p.last.err == nil) {
		return p.last, nil
	}
	a := &executorStart{done: make(chan struct{})}
	p.last = a
	go func() {
		defer close(a.done)
		var report worker.Report
		if a.executor, report, a.err = newWorkerExecutor(p.env, worker.Options{Logger: p.logger}); a.err == nil {
			logSandbox("agent code", report, p.logger)
		}
	}()
	return a, nil
}

// over reports whether the attempt is complete.
func (a *executorStart) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (p *codeExecutor) Workers() scripting.Workers {
	p.mu.Lock()
	a := p.last
	p.mu.Unlock()
	if a == nil || !a.over() {
		return scripting.Workers{}
	}
	staffed, ok := a.executor.(scripting.StatsExecutor)
	if !ok {
		return scripting.Workers{}
	}
	return staffed.Workers()
}

func (p *codeExecutor) Close() error {
	p.mu.Lock()
	p.closed = true
	a := p.last
	p.mu.Unlock()
	if a == nil {
		return nil
	}
	if <-a.done; a.err != nil {
		return nil // Run returned the error
	}
	return a.executor.Close()
}

// superviseVerb is the verb of the process that runs a program of an exec grant.
const superviseVerb = "supervise"

// supervise returns the command of the supervisor, or nil if it is unknown.
func supervise(e env) []string {
	if e.process.executable == "" {
		return nil
	}
	return []string{e.process.executable, e.process.arg0, superviseVerb}
}

func newSupervise(e env) *cobra.Command {
	return &cobra.Command{
		Use:    superviseVerb,
		Short:  "Run a program for the mcpd that starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := supervisor.Main(e.stdin); err != nil {
				return findingsError("%v", err)
			}
			return nil
		},
	}
}
