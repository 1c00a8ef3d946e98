package worker

import "github.com/mcpd/mcpd/scripting"

// Workers tells how the processes are. See [scripting.Staffed].
func (e *Executor) Workers() scripting.Workers {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.counts
	now.Processes, now.Waiting = len(e.peers), e.room.waits()
	for _, p := range e.peers {
		now.Calls += p.calls
		now.Computing += int(max(p.busy.Load(), 0))
	}
	return now
}

// note changes what is counted since the beginning.
func (e *Executor) note(change func(*scripting.Workers)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.counts)
}
