// Package worker does in processes of its own what this process must survive.
//
// A [Pool] has such processes for trials; an [Executor] has its own. Both kill a process that is
// over a limit. [Main] is what the processes run. All that crosses between the two sides are
// frames of bytes on the standard streams; a process can do nothing but compute, and what it
// says counts for what it was given alone. [Executor.Report] says what the system offers to
// confine it.
//
// They compile bodies on trial ([Pool.Try]): parsers and compilers of JavaScript
// recurse on what they read, some take quadratic time on it, and none can be
// interrupted, so that a body which is too large to be bounded beforehand is
// compiled where that costs nothing but a process.
//
// And they run bodies ([Executor]), several at once in each. A call that does not
// end in time costs its process, and the other calls in that run again in another
// one from their journals, which this side keeps. Programs whose calls end by
// themselves share no process with others (see [record]), and have turns that no
// others take (see [admission]). Code that an agent wrote is sent with its call and
// forgotten with it, on both sides.
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

// Options adjust an [Executor]. Each zero member means its default.
type Options struct {
	// Processes is how many run at once, beside a spare; by default two for each
	// processor, and 7 at most, which are 8 with the spare. There may be twice as many
	// for a while where calls compute for long, and for those that cannot
	// share one: by their memory, their program or its record, or since they were in
	// one that died; and one more for each memory that has none.
	Processes int
	// Memory is how many bytes a process may have resident beside the program that it
	// runs; by default 256 MiB. Tool files under a ceiling of memory that say nothing
	// have 256 MiB of it at most.
	Memory int64
	// Grace is how long past its end a call may hold its process before that is
	// killed; by default 100 ms.
	KillDelay time.Duration
	// Computing is how many calls compute at once at most, those that wait for
	// their host not counted; by default 8 for each processor. Others wait.
	// Three quarters of them at most are calls of programs that are not known to end.
	MaxRunning int
	// Patience is how long a call may wait for that before those that come behind
	// it are refused; by default 500 ms.
	MaxQueueTime time.Duration
	// Logger is told of processes that end before they are let go; nil drops it.
	Logger *slog.Logger
}

// maxShared is how many processes a call may lose to the other calls in them,
// before it has one for itself.
const maxShared = 3

// defaultMemory is how many bytes a process may have unless more is said.
const defaultMemory = 256 << 20

// usual returns how many processes there are beside a spare for so many processors.
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

// Executor runs calls in processes of their own, several in each. What a body
// does there costs its own call at most: a process that does not let a call end
// is killed, and the other calls in it are run again elsewhere, where their
// journals answer what they had asked. It is a [scripting.Executor].
type Executor struct {
	// fixed at creation
	command   command
	options   Options
	admission *admission // admits calls that compute

	scheduler
	monitor
	history      history
	pendingBytes atomic.Int64 // bytes of the arguments of pending host calls, of all calls
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
	spareTaken bool     // the spare was taken, and the next look starts another: a program that makes one call needs none
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
	cpuAllowance time.Duration                        // processor time that a process gets at a time (see [allowance])
	cpuSpent     func(pid int) (time.Duration, error) // returns processor time of a process
}

// NewExecutor returns an executor whose processes run the program at path with
// argv, the name of the program first. The program calls [Main] and ends. The
// error says that no process can be started.
func NewExecutor(o Options, path string, argv ...string) (*Executor, error) {
	o = o.withDefaults()
	size := sizeOf(path)
	e := &Executor{
		command: command{path, argv}, options: o, admission: newAdmission(o.MaxRunning, o.MaxQueueTime),
		scheduler: scheduler{overLimit: map[int]*execution{}},
		monitor:   monitor{resident: func(pid int) int64 { return resident(pid, size) }, cpuAllowance: defaultAllowance(), cpuSpent: sandbox.Spent},
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

// sizeOf returns how many bytes a program has; 0 when that is not known, and all of it
// counts as memory of its processes.
func sizeOf(path string) int64 {
	file, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return file.Size()
}

var errClosed = errors.New("the executor is closed")

// Run runs a call. See [scripting.Executor].
func (e *Executor) Run(ctx context.Context, c scripting.Call, h scripting.Host) (out scripting.Outcome, err error) {
	if c.Program == nil {
		return scripting.Outcome{}, errors.New("run a call: no program")
	}
	l, err := e.admission.admit(ctx, c, e.ratingOf(c.Program.Hash(), isOneShot(c.Program)), e.ticks.Load())
	if err != nil {
		if errors.Is(err, scripting.ErrOverloaded) {
			e.note(func(n *scripting.Workers) { n.Refused++ })
		}
		if failure := scripting.ContextFailure(ctx); failure != nil {
			return scripting.Outcome{Failure: failure}, nil
		}
		return scripting.Outcome{}, fmt.Errorf("run %q: %w", c.Program.Name(), err)
	}
	x, err := newExecution(c, h, l, &e.pendingBytes)
	if err != nil {
		l.finish()
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

// isOnce reports whether a program is for one call, as what an agent wrote.
func isOneShot(p *scripting.Program) bool { return p.Kind() == scripting.Code }

// recordOf returns what is known of a program, which of one for one call is nothing.
func (e *Executor) ratingOf(program [32]byte, once bool) rating {
	if once {
		return unrated
	}
	return e.history.lookup(program)
}

// attempt runs a call in one process, which may be dead in the end.
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

// Close ends all processes. No Run may follow.
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

// Workers tells how the processes are. See [scripting.Staffed].
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

// note changes what is counted since the beginning.
func (e *Executor) note(change func(*scripting.Workers)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.counts)
}
