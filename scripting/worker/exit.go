package worker

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// kill kills the process. The first cause counts.
func (p *process) kill(why exitCause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit.cause != notExited {
		return
	}
	p.exit = exit{cause: why, calls: len(p.executions), oldest: p.oldestRunning()}
	_ = p.cmd.Process.Kill()
	close(p.killed)
	time.AfterFunc(drainWait, func() { _ = p.stderr.Close() }) // other processes may hold it open
}

// isKilled reports whether the process was killed or has exited. It accepts no more calls, but its
// exit may take long.
func (p *process) isKilled() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// exitCause is the reason for the exit of a process.
type exitCause int

const (
	notExited    exitCause = iota
	exitUnknown            // the process exited by itself
	exitProtocol           // the process violated the protocol
	exitTimeout            // a call did not end in time
	exitMemory             // the process exceeded its memory limit
	exitIdle               // the process was idle
	exitClosed             // the executor was closed
)

// exitError is the error of a call if its process exited first.
type exitError struct {
	exit
	total  int // calls since the start of the process
	stderr string
	// notStarted is set if the process had exited before the call started.
	notStarted bool
}

// Error returns the cause, and the first line of standard error.
func (e *exitError) Error() string {
	what := [...]string{"running", "exited by itself", "violated the protocol", "call did not end in time", "exceeded its memory limit", "idle", "executor closed"}[e.cause]
	if first, _, _ := strings.Cut(e.stderr, "\n"); first != "" {
		what += ": " + first
	}
	return "worker process exited: " + what
}

// exitErr returns the error for calls of an exited process.
func (p *process) exitErr() *exitError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &exitError{exit: p.exit, total: p.total, stderr: p.stderrHead.String()}
}

// notStartedErr returns the error for a call that had not started when the process exited.
func (p *process) notStartedErr() *exitError {
	d := p.exitErr()
	d.notStarted = true
	return d
}

// isUnrelated reports whether the process was killed for a reason that has nothing to do with the
// call.
func (e *exitError) isUnrelated() bool {
	return e.notStarted || e.cause == exitTimeout || e.cause == exitIdle
}

// isSuspect reports whether the call may have caused the exit: it computed about as long as any
// other call in the process. The next attempt of a suspect is exclusive.
func (e *exitError) isSuspect(x *execution) bool {
	since := x.runningSince.Load()
	return !e.isUnrelated() && (e.oldest == 0 || since != 0 && since <= e.oldest+1)
}

// isResponsible reports whether the call caused the exit. It must have been alone in the process.
// Either it was the only call ever and the exceeded limit is known, or this is not the first time:
// memory of earlier calls may remain after their end. Programs of other calls cannot have most of
// the memory (see [process.ensureProgram]).
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

// limit returns the name of the exceeded limit; empty if unknown.
func (e *exitError) limit() string {
	switch {
	case e.cause == exitMemory, strings.Contains(e.stderr, "out of memory"), strings.Contains(e.stderr, "cannot allocate memory"), strings.Contains(e.stderr, "failed to allocate"):
		return "memory"
	case strings.Contains(e.stderr, "stack overflow"), strings.Contains(e.stderr, "stack exceeds"):
		return "stack"
	}
	return ""
}

// failure returns the failure of the responsible call.
func (e *exitError) failure(memory int64) *scripting.Failure {
	f := &scripting.Failure{Kind: scripting.Limit, Limit: e.limit()}
	switch f.Limit {
	case "memory":
		f.Message = fmt.Sprintf("the script needs more memory than its limit of %d MiB", memory>>20)
	case "stack":
		f.Message = fmt.Sprintf("the script needs more stack than its limit of %d MiB", maxStack>>20)
	default:
		f.Limit = "process"
		f.Message = fmt.Sprintf("the worker process crashed twice while it ran this script (limits: %d MiB of memory, %d MiB of stack)", memory>>20, maxStack>>20)
		if strings.Contains(e.stderr, "failed to create new OS thread") {
			f.Message = "the worker process cannot create threads: the system limits the number of threads for the user of mcpd"
		}
	}
	return f
}

const (
	// tickInterval is the time between checks of the processes.
	tickInterval = 50 * time.Millisecond
	// maxIdleTicks is how many ticks a process may be idle, and minIdleTicks how many if there are
	// more processes than usual: starting one costs as much as some hundred calls.
	maxIdleTicks = int(time.Minute / tickInterval)
	minIdleTicks = int(time.Second / tickInterval)
)

// startTicks starts the periodic check. The caller holds mu.
func (e *Executor) startTicks() {
	if e.timer == nil {
		e.timer = time.AfterFunc(tickInterval, e.tick)
	}
}

// tick kills processes that exceed their memory limit or are idle, extends the processor time of
// the others, marks stuck processes, and replaces a spare that was taken.
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

// defaultAllowance is the processor time that a process gets at a time: a minute of all processors.
// So a process with a stopped or hanging parent does not compute forever. It is 0 if this process
// cannot raise the limit later.
func defaultAllowance() time.Duration {
	if !sandbox.SupportsCPULimit {
		return 0
	}
	return time.Minute * time.Duration(runtime.GOMAXPROCS(0))
}

// extendCPULimit raises the processor time of a process that has spent half of it. A process whose
// limit cannot be raised accepts no more calls, and exits after its own. The caller holds mu.
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
		err = sandbox.SetCPULimit(pid, p.cpuLimit)
	}
	if err != nil {
		p.draining = true
	}
}
