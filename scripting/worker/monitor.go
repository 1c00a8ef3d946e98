package worker

import (
	"runtime"
	"time"

	"github.com/mcpd/mcpd/internal/process/sandbox"
)

const (
	// look is how often processes are looked at while there are any with calls.
	look = 50 * time.Millisecond
	// rest is how many looks a process may have nothing to do, and soonest how many
	// one may that is beyond their usual number: to start one costs as much as
	// some hundred calls.
	rest    = int(time.Minute / look)
	soonest = int(time.Second / look)
)

// watch has the processes looked at. The caller holds mu.
func (e *Executor) watch() {
	if e.watching == nil {
		e.watching = time.AfterFunc(look, e.look)
	}
}

// look ends processes that have too much memory, or nothing to do, gives the others
// time, finds those that are stuck, and has a spare started in place of one that was taken.
func (e *Executor) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.looks.Add(1)
	e.restock()
	beyond := len(e.peers) - e.options.Processes
	for _, p := range e.peers {
		if p.isDoomed() {
			continue
		}
		p.stuck = p.calls > 0 && p.holds()
		e.extend(p)
		switch {
		case e.resident(p.cmd.Process.Pid) > p.memory:
			p.end(endMemory)
		case p.calls > 0:
			p.rests = 0
		case p.drained, p.rests >= rest, p.rests >= soonest && beyond > 0:
			beyond--
			p.end(endRested)
		default:
			p.rests++
		}
	}
	if len(e.peers) == 0 {
		e.watching = nil
		return
	}
	e.watching.Reset(look)
}

// allowance is how much processor time a process has until it is given more: a minute
// of all processors. One whose parent is stopped, or hangs, does not compute for
// ever. It is 0 where this process could not give more.
func allowance() time.Duration {
	if !sandbox.MayAllow {
		return 0
	}
	return time.Minute * time.Duration(runtime.GOMAXPROCS(0))
}

// extend gives a process more processor time when it has spent half of what it had.
// One that cannot be given more gets no more calls, and is replaced while its own
// have the other half. The caller holds mu.
func (e *Executor) extend(p *peer) {
	if e.allowance == 0 {
		return
	}
	pid := p.cmd.Process.Pid
	spent, err := e.spent(pid)
	if err == nil && spent < p.allowed-e.allowance/2 {
		return
	}
	if err == nil {
		p.allowed = spent + e.allowance
		err = sandbox.Allow(pid, p.allowed)
	}
	if err != nil {
		p.drained = true
	}
}
