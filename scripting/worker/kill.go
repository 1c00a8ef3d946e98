package worker

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// kill kills the process, for the first cause that is given.
func (p *process) kill(why exitCause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit.cause != notExited {
		return
	}
	p.exit = exit{cause: why, calls: len(p.executions), oldest: p.oldestRunning()}
	_ = p.cmd.Process.Kill()
	close(p.killed)
	time.AfterFunc(drainWait, func() { _ = p.stderr.Close() }) // others may hold it open
}

// isDoomed reports whether the process was killed, or has ended: it takes no calls
// any more, though it may be long until it is gone.
func (p *process) isKilled() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// cause is why a process has ended.
type exitCause int

const (
	notExited    exitCause = iota // it lives
	exitUnknown                   // it ended by itself
	exitProtocol                  // it did not keep to the protocol
	exitTimeout                   // a call did not let go of it
	exitMemory                    // it had too much memory
	exitIdle                      // it had nothing to do
	exitClosed                    // the executor was closed
)

// deathError says that a process ended before a call of it.
type exitError struct {
	exit
	total  int // calls since the start of the process
	stderr string
	// missed says that the call was not among those: it came too late.
	notStarted bool
}

// Error returns why the process has ended.
func (e *exitError) Error() string {
	what := [...]string{"it lives", "it ended by itself", "it did not keep to the protocol", "a call did not let go of it", "it had too much memory", "it had nothing to do", "the executor is closed"}[e.cause]
	if first, _, _ := strings.Cut(e.stderr, "\n"); first != "" {
		what += ": " + first
	}
	return "the process of a call has ended: " + what
}

// death returns why the process has ended, which it has.
func (p *process) exitErr() *exitError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &exitError{exit: p.exit, total: p.total, stderr: p.stderrHead.String()}
}

// missed is the death of a process that had ended before a call was in it.
func (p *process) notStartedErr() *exitError {
	d := p.exitErr()
	d.notStarted = true
	return d
}

// innocent reports whether the process was ended for what the call has nothing
// to do with.
func (e *exitError) isUnrelated() bool {
	return e.notStarted || e.cause == exitTimeout || e.cause == exitIdle
}

// suspects reports whether a call may be what the process has died of, as it
// computed about as long as any other in it: it is to run alone.
func (e *exitError) isSuspect(x *execution) bool {
	since := x.runningSince.Load()
	return !e.isUnrelated() && (e.oldest == 0 || since != 0 && since <= e.oldest+1)
}

// blames reports whether a call is what its process has died of: the one that
// was alone in it, when it was so from the beginning and it is known what of, or
// this is not the first time. What other calls had made may still be there when
// they have ended. The programs of others cannot have been the most of its memory
// (see [process.teach]).
func (e *exitError) isResponsible(again bool) bool {
	if e.isUnrelated() || e.calls > 1 {
		return false
	}
	return again || e.total == 1 && e.limit() != ""
}

func (e *exitError) counter(n *scripting.Workers) *uint64 {
	switch {
	case e.limit() == "memory":
		return &n.Memory
	case e.cause == exitTimeout:
		return &n.Overdue
	case e.cause == exitProtocol:
		return &n.Protocol
	}
	return &n.Crashed
}

// limit names the limit that the process was over; empty when it is not known.
func (e *exitError) limit() string {
	switch {
	case e.cause == exitMemory, strings.Contains(e.stderr, "out of memory"), strings.Contains(e.stderr, "cannot allocate memory"), strings.Contains(e.stderr, "failed to allocate"):
		return "memory"
	case strings.Contains(e.stderr, "stack overflow"), strings.Contains(e.stderr, "stack exceeds"):
		return "stack"
	}
	return ""
}

// failure is that of the call which is to blame.
func (e *exitError) failure(memory int64) *scripting.Failure {
	f := &scripting.Failure{Kind: scripting.Limit, Limit: e.limit()}
	switch f.Limit {
	case "memory":
		f.Message = fmt.Sprintf("the body needs more memory than the %d MiB that it may have", memory>>20)
	case "stack":
		f.Message = fmt.Sprintf("the body needs more stack than the %d MiB that it may have", maxStack>>20)
	default:
		f.Limit = "process"
		f.Message = fmt.Sprintf("the process that ran the body has died of it, twice; it may have %d MiB of memory and %d MiB of stack", memory>>20, maxStack>>20)
		if strings.Contains(e.stderr, "failed to create new OS thread") {
			f.Message = "the process that would run the body gets no threads from the system, which bounds them for the user of mcpd"
		}
	}
	return f
}

const (
	// look is how often processes are looked at while there are any with calls.
	tickInterval = 50 * time.Millisecond
	// rest is how many looks a process may have nothing to do, and soonest how many
	// one may that is beyond their usual number: to start one costs as much as
	// some hundred calls.
	maxIdleTicks = int(time.Minute / tickInterval)
	minIdleTicks = int(time.Second / tickInterval)
)

// watch has the processes looked at. The caller holds mu.
func (e *Executor) startTicks() {
	if e.timer == nil {
		e.timer = time.AfterFunc(tickInterval, e.tick)
	}
}

// look ends processes that have too much memory, or nothing to do, gives the others
// time, finds those that are stuck, and has a spare started in place of one that was taken.
func (e *Executor) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.ticks.Add(1)
	e.replaceSpare()
	beyond := len(e.processes) - e.options.Processes
	for _, p := range e.processes {
		if p.isKilled() {
			continue
		}
		p.stuck = p.calls > 0 && p.isStuck()
		e.extendCPULimit(p)
		switch {
		case e.resident(p.cmd.Process.Pid) > p.memory:
			p.kill(exitMemory)
		case p.calls > 0:
			p.idleTicks = 0
		case p.draining, p.idleTicks >= maxIdleTicks, p.idleTicks >= minIdleTicks && beyond > 0:
			beyond--
			p.kill(exitIdle)
		default:
			p.idleTicks++
		}
	}
	if len(e.processes) == 0 {
		e.timer = nil
		return
	}
	e.timer.Reset(tickInterval)
}

// allowance is how much processor time a process has until it is given more: a minute
// of all processors. One whose parent is stopped, or hangs, does not compute for
// ever. It is 0 where this process could not give more.
func defaultAllowance() time.Duration {
	if !sandbox.MayAllow {
		return 0
	}
	return time.Minute * time.Duration(runtime.GOMAXPROCS(0))
}

// extend gives a process more processor time when it has spent half of what it had.
// One that cannot be given more gets no more calls, and is replaced while its own
// have the other half. The caller holds mu.
func (e *Executor) extendCPULimit(p *process) {
	if e.cpuAllowance == 0 {
		return
	}
	pid := p.cmd.Process.Pid
	spent, err := e.cpuSpent(pid)
	if err == nil && spent < p.cpuLimit-e.cpuAllowance/2 {
		return
	}
	if err == nil {
		p.cpuLimit = spent + e.cpuAllowance
		err = sandbox.Allow(pid, p.cpuLimit)
	}
	if err != nil {
		p.draining = true
	}
}
