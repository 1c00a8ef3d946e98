package worker

import (
	"context"

	"github.com/mcpd/mcpd/scripting"
)

// of returns the lane of the owner 0 for the calls of programs with a record.
func (a *admission) of(r record) *lane {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner(0, 0).lane(r)
}

// choose takes a process for a call, which is one of the owner 0 unless it has another.
// It is nil when the call would have to wait.
func (e *Executor) choose(n need) (*peer, error) {
	n.own(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.place(n)
}

// release takes a call out of a process that choose has given it.
func release(e *Executor, p *peer, n need, said record) {
	n.own(e)
	e.release(p, n, said)
}

func (n *need) own(e *Executor) {
	if n.owner == nil {
		n.owner = e.room.of(unknown).owner
	}
}

// admit begins a call of the owner 0, of a program of which nothing is known.
func (l *lane) admit(ctx context.Context, c scripting.Call) error {
	_, err := l.room.admit(ctx, c, unknown, 1)
	return err
}
