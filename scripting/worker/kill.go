package worker

import (
	"runtime"
	"time"

	"github.com/mcpd/mcpd/internal/process/sandbox"
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
