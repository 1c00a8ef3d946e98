package worker

import (
	"cmp"
	"slices"
)

// waiter is a call that waits for a process.
type waiter struct {
	need need
	come chan found // is sent what became of it, once
}

// found is a process, or why none can be had.
type found struct {
	peer *peer
	err  error
}

// wake gives processes to those that wait and for whom there is one: first to the owner
// that has fewest calls in processes, and of several of those to the one whose last turn is
// longest ago. The caller holds mu.
func (e *Executor) wake() {
	for e.wakeOne() {
	}
}

// wakeOne reports whether a call that waited waits no more.
func (e *Executor) wakeOne() bool {
	slices.SortStableFunc(e.waiting, func(a, b *waiter) int {
		x, y := a.need.owner, b.need.owner
		return cmp.Or(cmp.Compare(x.inProcess, y.inProcess), cmp.Compare(x.placed, y.placed))
	})
	for i, w := range e.waiting {
		p, err := e.place(w.need)
		if p == nil && err == nil {
			continue
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.placed++
		w.need.owner.placed = e.placed
		w.come <- found{p, err}
		return true
	}
	return false
}

// giveUp takes back a call that waits no more. A process that has come meanwhile goes to
// others.
func (e *Executor) giveUp(w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.waiting, w); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		return
	}
	if f := <-w.come; f.peer != nil {
		e.leave(f.peer, w.need, unknown)
	}
}
