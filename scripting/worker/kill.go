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
func (p *process) kill(why cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit.cause != endless {
		return
	}
	p.exit = exit{cause: why, left: len(p.executions), oldest: p.longest()}
	_ = p.cmd.Process.Kill()
	close(p.doomed)
	time.AfterFunc(lastWait, func() { _ = p.words.Close() }) // others may hold it open
}

// isDoomed reports whether the process was killed, or has ended: it takes no calls
// any more, though it may be long until it is gone.
func (p *process) isDoomed() bool {
	select {
	case <-p.doomed:
		return true
	default:
		return false
	}
}

// cause is why a process has ended.
type cause int

const (
	endless     cause = iota // it lives
	endUnknown               // it ended by itself
	endProtocol              // it did not keep to the protocol
	endOverdue               // a call did not let go of it
	endMemory                // it had too much memory
	endRested                // it had nothing to do
	endClosed                // the executor was closed
)

// deathError says that a process ended before a call of it.
type deathError struct {
	exit
	ever  int // calls since the start of the process
	words string
	// missed says that the call was not among those: it came too late.
	missed bool
}

// Error returns why the process has ended.
func (e *deathError) Error() string {
	what := [...]string{"it lives", "it ended by itself", "it did not keep to the protocol", "a call did not let go of it", "it had too much memory", "it had nothing to do", "the executor is closed"}[e.cause]
	if first, _, _ := strings.Cut(e.words, "\n"); first != "" {
		what += ": " + first
	}
	return "the process of a call has ended: " + what
}

// death returns why the process has ended, which it has.
func (p *process) death() *deathError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &deathError{exit: p.exit, ever: p.ever, words: p.last.String()}
}

// missed is the death of a process that had ended before a call was in it.
func (p *process) missed() *deathError {
	d := p.death()
	d.missed = true
	return d
}

// innocent reports whether the process was ended for what the call has nothing
// to do with.
func (e *deathError) innocent() bool {
	return e.missed || e.cause == endOverdue || e.cause == endRested
}

// suspects reports whether a call may be what the process has died of, as it
// computed about as long as any other in it: it is to run alone.
func (e *deathError) suspects(x *execution) bool {
	since := x.since.Load()
	return !e.innocent() && (e.oldest == 0 || since != 0 && since <= e.oldest+1)
}

// blames reports whether a call is what its process has died of: the one that
// was alone in it, when it was so from the beginning and it is known what of, or
// this is not the first time. What other calls had made may still be there when
// they have ended. The programs of others cannot have been the most of its memory
// (see [process.teach]).
func (e *deathError) blames(again bool) bool {
	if e.innocent() || e.left > 1 {
		return false
	}
	return again || e.ever == 1 && e.limit() != ""
}

func (e *deathError) counted(n *scripting.Workers) *uint64 {
	switch {
	case e.limit() == "memory":
		return &n.Memory
	case e.cause == endOverdue:
		return &n.Overdue
	case e.cause == endProtocol:
		return &n.Protocol
	}
	return &n.Crashed
}

// limit names the limit that the process was over; empty when it is not known.
func (e *deathError) limit() string {
	switch {
	case e.cause == endMemory, strings.Contains(e.words, "out of memory"), strings.Contains(e.words, "cannot allocate memory"), strings.Contains(e.words, "failed to allocate"):
		return "memory"
	case strings.Contains(e.words, "stack overflow"), strings.Contains(e.words, "stack exceeds"):
		return "stack"
	}
	return ""
}

// failure is that of the call which is to blame.
func (e *deathError) failure(memory int64) *scripting.Failure {
	f := &scripting.Failure{Kind: scripting.Limit, Limit: e.limit()}
	switch f.Limit {
	case "memory":
		f.Message = fmt.Sprintf("the body needs more memory than the %d MiB that it may have", memory>>20)
	case "stack":
		f.Message = fmt.Sprintf("the body needs more stack than the %d MiB that it may have", maxStack>>20)
	default:
		f.Limit = "process"
		f.Message = fmt.Sprintf("the process that ran the body has died of it, twice; it may have %d MiB of memory and %d MiB of stack", memory>>20, maxStack>>20)
		if strings.Contains(e.words, "failed to create new OS thread") {
			f.Message = "the process that would run the body gets no threads from the system, which bounds them for the user of mcpd"
		}
	}
	return f
}

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
	beyond := len(e.processes) - e.options.Processes
	for _, p := range e.processes {
		if p.isDoomed() {
			continue
		}
		p.stuck = p.calls > 0 && p.holds()
		e.extend(p)
		switch {
		case e.resident(p.cmd.Process.Pid) > p.memory:
			p.kill(endMemory)
		case p.calls > 0:
			p.rests = 0
		case p.drained, p.rests >= rest, p.rests >= soonest && beyond > 0:
			beyond--
			p.kill(endRested)
		default:
			p.rests++
		}
	}
	if len(e.processes) == 0 {
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
func (e *Executor) extend(p *process) {
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
