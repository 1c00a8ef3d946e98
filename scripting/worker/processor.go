package worker

import (
	"runtime"
	"time"

	"github.com/mcpd/mcpd/internal/sandbox"
)

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
