package worker

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

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
