package worker

import (
	"cmp"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
)

func uvarint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// requirements are what a call requires of a process.
type requirements struct {
	owner  *owner // owner of the call
	memory int64
	// exclusive forbids other calls in the process.
	exclusive bool
	// nested is set if other calls wait for this one; they may hold all processes.
	nested  *execution
	program [32]byte
	rating  rating // rating of the program
	// isolatedFor is set if only calls of this owner may share the process: calls of programs that
	// are not trusted, of an owner that recently cost a process.
	isolatedFor *owner
	// oneShot is set if the program has only this call, like the code of an agent. Processes drop
	// it after the call, and it has no rating.
	oneShot bool
}

// mayExceedLimit reports whether the call may start a process beyond the limit. One call of each
// depth may: the calls that it waits for are deeper, so that there is no deadlock. The caller holds
// mu.
func (e *Executor) mayExceedLimit(n requirements) bool {
	return n.nested != nil && e.overLimit[n.nested.call.Depth] == nil
}

// acquire returns the best process for a call: the one with the fewest calls that compute, or a new
// one if the limit permits. It waits if there is none.
func (e *Executor) acquire(ctx context.Context, n requirements) (*process, error) {
	e.mu.Lock()
	p, err := e.tryAcquire(n)
	if p != nil || err != nil {
		e.mu.Unlock()
		return p, err
	}
	w := &waiter{need: n, result: make(chan acquired, 1)}
	e.waiting = append(e.waiting, w)
	e.mu.Unlock()
	select {
	case f := <-w.result:
		return f.process, f.err
	case <-ctx.Done():
		e.cancelWait(w)
		return nil, ctx.Err()
	}
}

// tryAcquire returns a process for a call, or nil if the call must wait. The caller holds mu.
func (e *Executor) tryAcquire(n requirements) (p *process, err error) {
	if e.closed {
		return nil, errClosed
	}
	e.setRating(&n)
	p = e.leastLoaded(n)
	if p == nil || n.exclusive || p.running.Load() >= n.packLimit() {
		instead := p
		if n.exclusive {
			instead = nil // prefer a process without memory of other calls
		}
		var another *process
		if limit := e.processLimit(n, instead); limit > 0 {
			another, err = e.addProcess(n, limit, instead)
		}
		if p != nil && p.isKilled() {
			p = nil // it was evicted
		}
		if another == nil && err == nil && p == nil && e.mayExceedLimit(n) {
			if another, err = e.addProcess(n, len(e.processes)+1, nil); another != nil {
				e.overLimit[n.nested.call.Depth] = n.nested
			}
		}
		if another != nil {
			p = another
		}
		// If no process can be started, the existing ones serve the call now or later.
		if err != nil && p == nil && !slices.ContainsFunc(e.processes, func(p *process) bool { return p.calls > 0 }) {
			return nil, err
		}
	}
	if p == nil {
		return nil, nil
	}
	p.calls++
	p.exclusive, p.trusted, p.isolatedFor, p.idleTicks = n.exclusive, n.rating.isTrusted(), n.isolatedFor, 0
	n.owner.inProcess++
	e.startTicks()
	return p, nil
}

// setRating sets the rating of the program, and whether the owner is isolated. The caller holds mu.
func (e *Executor) setRating(n *requirements) {
	tick := e.ticks.Load()
	n.rating, n.isolatedFor = e.ratingOf(n.program, n.oneShot), nil
	if n.rating.isTrusted() && n.owner.offenses.has(n.program, tick) {
		n.rating = misbehaved
	}
	if !n.rating.isTrusted() && n.owner.offenses.isRecent(tick) {
		n.isolatedFor = n.owner
	}
}

// processLimit returns the maximum number of processes for a call that could use instead, or nil.
// One process is reserved for trusted programs of each memory limit if other programs use all
// others, and vice versa. The caller holds mu.
func (e *Executor) processLimit(n requirements, instead *process) int {
	switch limit := e.options.Processes; {
	case e.isFull(n):
		return 0
	case instead != nil && !instead.stuck:
		return limit
	case e.count(func(p *process) bool { return p.canShare(n) && p.memory == n.memory }) == 0:
		return max(2*limit, e.count(func(p *process) bool { return p.calls > 0 })) + 1
	default:
		return 2 * limit // unsuitable processes may never be idle
	}
}

// isFull reports whether no more processes may run such calls. Trusted and other programs may each
// have twice the usual number; three quarters of these are for isolated owners. The caller holds
// mu.
func (e *Executor) isFull(n requirements) bool {
	limit := 2 * e.options.Processes
	if e.count(func(p *process) bool { return p.hasSameClass(n) }) >= limit {
		return true
	}
	return n.isolatedFor != nil && e.count(func(p *process) bool { return p.hasSameClass(n) && p.isolatedFor != nil }) >= limit*3/4
}

// hasSameClass reports whether a process runs trusted programs, or others, as n requires.
func (p *process) hasSameClass(n requirements) bool {
	return p.calls > 0 && p.trusted == n.rating.isTrusted()
}

// canShare reports whether a process has calls that the call may share it with.
func (p *process) canShare(n requirements) bool {
	return p.hasSameClass(n) && p.isolatedFor == n.isolatedFor
}

func (e *Executor) count(is func(*process) bool) (count int) {
	for _, p := range e.processes {
		if is(p) {
			count++
		}
	}
	return count
}

// packSize is how many calls compute in a process before a fast call goes to another process. A
// process that is busy need not be woken for the next call.
const packSize = 8

// packLimit is how many calls compute in a process before the call goes to another process.
func (n requirements) packLimit() int64 {
	if n.rating == fast && !n.exclusive {
		return packSize
	}
	return 1
}

// leastLoaded returns the process with the lowest score, or for a fast call the first with fewer
// than packLimit calls; nil if none is suitable. The caller holds mu.
func (e *Executor) leastLoaded(n requirements) (best *process) {
	enough, full := n.packLimit(), e.isFull(n)
	for _, p := range e.processes {
		if !p.accepts(n) || full && p.calls == 0 {
			continue
		}
		if enough > 1 && !p.stuck && p.running.Load() < enough && p.trusted == n.rating.isTrusted() {
			return p
		}
		if best == nil || p.loadScore(n) < best.loadScore(n) {
			best = p
		}
	}
	return best
}

// accepts reports whether a call may use a process: one without calls, or one whose calls have the
// same class, and the same owner if the owner is isolated. The caller holds mu.
func (p *process) accepts(n requirements) bool {
	if p.isKilled() || p.draining || p.exclusive || p.memory != n.memory {
		return false
	}
	return p.calls == 0 || !n.exclusive && p.canShare(n)
}

// loadScore returns the load of a process: mainly the number of calls that compute. A stuck process
// counts as three calls more: if it were excluded, all long calls would pile up in the other
// process. A process that may first have to collect the garbage of other programs costs some more.
// The caller holds mu.
func (p *process) loadScore(n requirements) int64 {
	load := p.running.Load()<<20 + int64(p.calls)
	if p.trusted != n.rating.isTrusted() {
		load += 1 << 19
	}
	if p.stuck {
		load += 3 << 20
	}
	return load
}

// addProcess takes the spare, or starts a process if there is none. It returns nil if there are
// limit processes and none can be evicted. instead is the process that the call could use otherwise.
// The caller holds mu.
func (e *Executor) addProcess(n requirements, limit int, instead *process) (p *process, err error) {
	if len(e.processes) >= limit && !e.evictIdle(n, instead) {
		return nil, nil
	}
	if p = e.spare; p != nil && (p.memory == 0 || p.memory == n.memory) {
		e.spare, e.first, e.spareTaken = nil, nil, true
	} else if p, err = e.start(); err != nil {
		return nil, err
	}
	if p.memory == 0 {
		p.configure(n.memory, e.cpuAllowance)
	}
	e.processes = append(e.processes, p)
	return p, nil
}

// evictIdle kills the process that was idle for longest and does not suit the call, and reports
// whether there was one. If the call could use instead, only processes with another memory limit
// are killed, to avoid compiling programs again. The caller holds mu.
func (e *Executor) evictIdle(n requirements, instead *process) bool {
	longest := -1
	for i, p := range e.processes {
		if p.calls == 0 && (instead == nil || p.memory != n.memory) && (longest < 0 || p.idleTicks > e.processes[longest].idleTicks) {
			longest = i
		}
	}
	if longest < 0 {
		return false
	}
	e.processes[longest].kill(exitIdle)
	e.processes = slices.Delete(e.processes, longest, longest+1)
	return true
}

// replaceSpare starts a spare if the last one was taken. The caller holds mu.
func (e *Executor) replaceSpare() {
	if e.spareTaken {
		e.spareTaken = false
		e.reaping.Go(e.startSpare)
	}
}

// startSpare starts a spare, even if there are as many processes as allowed: it replaces the next
// one that dies.
func (e *Executor) startSpare() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.spare != nil {
		return
	}
	spare, err := e.start()
	if err != nil {
		e.options.Logger.Warn("start spare worker process", slog.Any("error", err))
		return
	}
	e.spare = spare
}

// release removes a call from a process, and records the rating of its program.
func (e *Executor) release(p *process, n requirements, observed rating) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.releaseLocked(p, n, observed)
}

// recordRating records the rating of a program. If the call did not end by itself, it counts for
// its owner only: other callers of the program are not affected.
func (e *Executor) recordRating(n requirements, observed rating) {
	switch {
	case observed == misbehaved:
		n.owner.offenses.add(n.program, e.ticks.Load())
	case !n.oneShot:
		e.history.update(n.program, observed)
	}
}

// releaseLocked is release for a caller that holds mu.
func (e *Executor) releaseLocked(p *process, n requirements, observed rating) {
	e.recordRating(n, observed)
	if x := n.nested; x != nil && e.overLimit[x.call.Depth] == x {
		delete(e.overLimit, x.call.Depth)
	}
	n.owner.inProcess--
	p.calls--
	p.exclusive, p.stuck = false, p.stuck && p.calls > 0
	if p.calls == 0 && p.draining {
		p.kill(exitIdle)
		e.processes = slices.DeleteFunc(e.processes, func(other *process) bool { return other == p })
	}
	e.wake()
}

// removeExited removes an exited process.
func (e *Executor) removeExited(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.processes, p); i >= 0 {
		e.processes = slices.Delete(e.processes, i, i+1)
	}
	if e.spare == p {
		e.spare = nil
	}
	e.wake()
	if d := p.exitErr(); !e.closed && d.cause != exitIdle && p != e.first {
		e.counts.Lost++
		*d.counter(&e.counts)++
		e.options.Logger.Warn("worker process exited", slog.String("cause", d.Error()), slog.Int("calls", d.calls))
		e.reaping.Go(e.startSpare)
	}
}

type waiter struct {
	need   requirements
	result chan acquired // receives the result once
}

// acquired is a process, or the reason why there is none.
type acquired struct {
	process *process
	err     error
}

// wake assigns processes to waiting calls: first to the owner with the fewest calls in processes,
// then to the owner whose last turn is longest ago. The caller holds mu.
func (e *Executor) wake() {
	for e.wakeOne() {
	}
}

// wakeOne reports whether it served a waiting call.
func (e *Executor) wakeOne() bool {
	slices.SortStableFunc(e.waiting, func(a, b *waiter) int {
		x, y := a.need.owner, b.need.owner
		return cmp.Or(cmp.Compare(x.inProcess, y.inProcess), cmp.Compare(x.lastPlaced, y.lastPlaced))
	})
	for i, w := range e.waiting {
		p, err := e.tryAcquire(w.need)
		if p == nil && err == nil {
			continue
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.placements++
		w.need.owner.lastPlaced = e.placements
		w.result <- acquired{p, err}
		return true
	}
	return false
}

// cancelWait removes a call that no longer waits. A process that it got meanwhile goes to others.
func (e *Executor) cancelWait(w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.waiting, w); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		return
	}
	if f := <-w.result; f.process != nil {
		e.releaseLocked(f.process, w.need, unrated)
	}
}
