// Package worker compiles and runs scripts in worker processes, so that a script cannot harm the
// process of the program.
//
// A [Pool] has processes that compile untrusted scripts on trial. An [Executor] has processes that
// run calls. Both kill a process that exceeds a limit. [Main] is the entry point of worker
// processes. The two sides exchange frames of bytes over the standard streams. A worker process can
// only compute, and its output affects only the calls that it was given. [Executor.Report] reports
// how the system confines worker processes.
//
// [Pool.Try] exists because parsers and compilers of JavaScript recurse on their input, some take
// quadratic time, and none can be interrupted. A script that is too large to be checked in advance
// is compiled where a failure costs only a process.
//
// An [Executor] runs several calls in each process. A call that exceeds its deadline costs its
// process. The parent keeps the journals of the other calls in that process, and runs these calls
// again in another process. A program is trusted after its calls have ended by themselves. Trusted programs share
// no process with other programs, and a quarter of the capacity is reserved for them. The code of an
// agent is sent with its call, and both sides drop it with the call.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/watchdog"
	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// Options configure an [Executor]. Each zero field means its default.
type Options struct {
	// Processes is the number of worker processes, besides a spare. The default is two for each
	// processor, at most 7. The number may double for a while if calls compute for long or cannot
	// share a process: because of their memory limit, their program or its rating, or because they
	// were in a process that died. There may be one more for each memory limit without a process.
	Processes int
	// Memory limits the resident memory of a process, in bytes, besides the executable. The default
	// is 256 MiB. It is also the maximum for tools without a memory setting.
	Memory int64
	// KillDelay is how long a call may hold its process after it ended, before the process is
	// killed. The default is 100 ms.
	KillDelay time.Duration
	// MaxRunning is the maximum number of calls that compute at once. Calls that wait for their
	// host do not count. The default is 8 for each processor; more calls wait. At most three
	// quarters may be calls of programs that are not known to end.
	MaxRunning int
	// MaxQueueTime is how long a call may wait for its turn before later calls are refused. The
	// default is 500 ms.
	MaxQueueTime time.Duration
	// Logger receives unexpected exits of processes. If nil, nothing is logged.
	Logger *slog.Logger
}

// maxShared is how often a call may lose its process to other calls before it gets an exclusive
// process.
const maxShared = 3

// defaultMemory is the default memory limit of a process, in bytes.
const defaultMemory = 256 << 20

// defaultProcesses returns the default number of processes, besides a spare.
func defaultProcesses(processors int) int { return min(2*processors, 7) }

func (o Options) withDefaults() Options {
	if o.Processes <= 0 {
		o.Processes = defaultProcesses(runtime.GOMAXPROCS(0))
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.KillDelay <= 0 {
		o.KillDelay = 100 * time.Millisecond
	}
	if o.MaxRunning <= 0 {
		o.MaxRunning = 8 * runtime.GOMAXPROCS(0)
	}
	if o.MaxQueueTime <= 0 {
		o.MaxQueueTime = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Executor runs calls in worker processes, several in each. A script can harm only its own call: a
// process with a call that does not end is killed, and its other calls run again in other
// processes, where their journals answer the host calls that they had made. It implements
// [scripting.Executor].
type Executor struct {
	// fixed at creation
	command   command
	options   Options
	admission *admission // admits calls that compute

	scheduler
	monitor
	history      history
	pendingBytes atomic.Int64 // bytes in the pending host calls of all calls
	lastCall     atomic.Uint64
	reaping      sync.WaitGroup
}

// command is the program that worker processes run.
type command struct {
	path string
	argv []string
}

// scheduler has the processes of an executor and the calls that wait for one.
type scheduler struct {
	mu         sync.Mutex
	processes  []*process
	spare      *process // started in advance; has no memory limit yet
	first      *process // first process until it has reported or has a call; only Report returns the error of its exit
	spareTaken bool     // the spare was taken, and the next tick starts another; a program that makes one call needs none
	waiting    []*waiter
	placements uint64             // calls that waited for a process and got one
	overLimit  map[int]*execution // nested calls with a process beyond the limit, by depth
	closed     bool
	counts     scripting.Workers // events since the start
}

// monitor checks processes at intervals.
type monitor struct {
	timer    *time.Timer       // nil while there are no processes; guarded by the mutex of the scheduler
	watchdog watchdog.Watchdog // checks the guards of calls
	ticks    atomic.Int64      // checks of the processes, from 1

	// fixed at creation
	resident     func(pid int) int64                  // returns bytes of memory beside the program; 0 if unknown
	cpuAllowance time.Duration                        // processor time that a process gets at a time (see [defaultAllowance])
	cpuSpent     func(pid int) (time.Duration, error) // returns processor time of a process
}

// NewExecutor returns an executor. Its processes run the executable at path. argv are its
// arguments; argv[0] is the name of the program. The executable calls [Main] and exits. NewExecutor
// returns an error if the first process cannot be started.
func NewExecutor(o Options, path string, argv ...string) (*Executor, error) {
	o = o.withDefaults()
	size := sizeOf(path)
	e := &Executor{
		command: command{path, argv}, options: o, admission: newAdmission(o.MaxRunning, o.MaxQueueTime),
		scheduler: scheduler{overLimit: map[int]*execution{}},
		monitor:   monitor{resident: func(pid int) int64 { return resident(pid, size) }, cpuAllowance: defaultAllowance(), cpuSpent: sandbox.CPUTime},
	}
	e.ticks.Store(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	spare, err := e.start()
	if err != nil {
		return nil, err
	}
	e.spare, e.first = spare, spare
	return e, nil
}

// sizeOf returns the size of an executable in bytes. It returns 0 if the size is unknown: then all
// of the executable counts as memory of its processes.
func sizeOf(path string) int64 {
	file, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return file.Size()
}

var errClosed = errors.New("executor is closed")

// Run runs a call. See [scripting.Executor].
func (e *Executor) Run(ctx context.Context, c scripting.Call, h scripting.Host) (out scripting.Outcome, err error) {
	if c.Program == nil {
		return scripting.Outcome{}, errors.New("run call: no program")
	}
	q, err := e.admission.admit(ctx, c, e.ratingOf(c.Program.Hash(), isOneShot(c.Program)), e.ticks.Load())
	if err != nil {
		if errors.Is(err, scripting.ErrOverloaded) {
			e.updateCounts(func(n *scripting.Workers) { n.Refused++ })
		}
		if failure := scripting.ContextFailure(ctx); failure != nil {
			return scripting.Outcome{Failure: failure}, nil
		}
		return scripting.Outcome{}, fmt.Errorf("run %q: %w", c.Program.Name(), err)
	}
	x, err := newExecution(c, h, q, &e.pendingBytes)
	if err != nil {
		q.finish()
		return scripting.Outcome{}, err
	}
	defer func() {
		x.finish()
		out.Stdout = x.recorder.Stdout()
	}()
	alone := false
	lost := 0
	for {
		out, dead, err := e.runAttempt(ctx, x, alone)
		if failure := scripting.ContextFailure(ctx); failure != nil && (dead != nil || err != nil) {
			return scripting.Outcome{Failure: failure}, nil
		}
		switch {
		case err != nil:
			return scripting.Outcome{}, fmt.Errorf("run %q: %w", c.Program.Name(), err)
		case dead == nil:
			return out, nil
		case dead.isResponsible(alone):
			return scripting.Outcome{Failure: dead.failure(x.memory(e.options))}, nil
		}
		if !dead.notStarted {
			lost++
		}
		alone = alone || dead.isSuspect(x) || lost >= maxShared
		failure, err := x.prepareRetry(ctx)
		if failure != nil || err != nil {
			return scripting.Outcome{Failure: failure}, err
		}
	}
}

// isOneShot reports whether a program has only one call, like the code of an agent.
func isOneShot(p *scripting.Program) bool { return p.Kind() == scripting.Code }

// ratingOf returns the rating of a program. One-shot programs are unrated.
func (e *Executor) ratingOf(program [32]byte, once bool) rating {
	if once {
		return unrated
	}
	return e.history.lookup(program)
}

// runAttempt runs a call in one process. If the process exits first, runAttempt returns an
// exitError.
func (e *Executor) runAttempt(ctx context.Context, x *execution, alone bool) (out scripting.Outcome, dead *exitError, err error) {
	n := requirements{owner: x.queue.owner, memory: x.memory(e.options), exclusive: alone, program: x.call.Program.Hash(), oneShot: isOneShot(x.call.Program)}
	if x.call.Tree != nil {
		n.nested = x
	}
	p, err := e.acquire(ctx, n)
	if err != nil {
		return out, nil, fmt.Errorf("find a process: %w", err)
	}
	defer func() { e.release(p, n, x.rate(e.ticks.Load(), out, dead, err)) }()
	x.id = e.lastCall.Add(1)
	x.guard = cancelGuard{ctx: ctx, process: p, id: x.id, killDelay: e.options.KillDelay, senders: &e.reaping}
	e.watchdog.Watch(&x.guard)
	defer e.watchdog.Unwatch(&x.guard)
	out, err = x.run(ctx, p, e.options.KillDelay)
	if errors.As(err, &dead) {
		return out, dead, nil
	}
	return out, nil, err
}

// Close kills all processes and waits for their exit. No Run may follow.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	processes := e.processes
	if e.spare != nil {
		processes = append(processes, e.spare)
	}
	if e.first != nil {
		processes = append(processes, e.first) // Report may wait for it
	}
	e.processes, e.spare = nil, nil
	for _, p := range processes {
		p.kill(exitClosed)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	e.wake()
	e.mu.Unlock()
	e.reaping.Wait()
	return nil
}

// Workers returns the state of the processes. See [scripting.StatsExecutor].
func (e *Executor) Workers() scripting.Workers {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.counts
	now.Processes, now.Waiting = len(e.processes), e.admission.waitingCalls()
	for _, p := range e.processes {
		now.Calls += p.calls
		now.Computing += int(max(p.running.Load(), 0))
	}
	return now
}

// updateCounts updates the counters.
func (e *Executor) updateCounts(change func(*scripting.Workers)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.counts)
}
