package worker

import (
	"cmp"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
)

func uvarint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// need is what a call needs of a process.
type requirements struct {
	owner  *owner // of the call
	memory int64
	// alone says that no other call may be in it.
	exclusive bool
	// nested is the call when others wait for it, which may hold all processes; nil
	// for any other.
	nested  *execution
	program [32]byte
	rating  rating // that of the program
	// apart is the owner when the call shares a process with calls of its own alone: those
	// of programs that are not proven, of one that has lately cost a process. Nil for others.
	isolatedFor *owner
	// once says that the program has this call alone, as code has that an agent wrote:
	// no process keeps it, and nothing is known of it.
	oneShot bool
}

// beyond reports whether a process is started for such a call beyond the bound. One
// call of each depth may have that: those that it waits for are deeper, so that
// in the end none waits for itself. The caller holds mu.
func (e *Executor) mayExceedLimit(n requirements) bool {
	return n.nested != nil && e.overLimit[n.nested.call.Depth] == nil
}

// acquire returns the process that is best for a call: the one with the fewest
// calls that compute, or another as long as there may be more.
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

// place takes a process for a call; it is nil when the call has to wait for one. The
// caller holds mu.
func (e *Executor) tryAcquire(n requirements) (p *process, err error) {
	if e.closed {
		return nil, errClosed
	}
	e.lookUp(&n)
	p = e.leastLoaded(n)
	if p == nil || n.exclusive || p.running.Load() >= n.packLimit() {
		instead := p
		if n.exclusive {
			instead = nil // one with nothing that other calls have left behind, if possible
		}
		var another *process
		if most := e.processLimit(n, instead); most > 0 {
			another, err = e.addProcess(n, most, instead)
		}
		if p != nil && p.isKilled() {
			p = nil // it has made room in vain
		}
		if another == nil && err == nil && p == nil && e.mayExceedLimit(n) {
			if another, err = e.addProcess(n, len(e.processes)+1, nil); another != nil {
				e.overLimit[n.nested.call.Depth] = n.nested
			}
		}
		if another != nil {
			p = another
		}
		// Where none can be started, those that there are do, now or once they can.
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

// judge looks up what is known of the program and the owner of a call. The caller holds mu.
func (e *Executor) lookUp(n *requirements) {
	look := e.ticks.Load()
	n.rating, n.isolatedFor = e.ratingOf(n.program, n.oneShot), nil
	if n.rating.isTrusted() && n.owner.offences.has(n.program, look) {
		n.rating = misbehaved
	}
	if !n.rating.isTrusted() && n.owner.offences.isRecent(look) {
		n.isolatedFor = n.owner
	}
}

// most returns how many processes there may be for a call, for which instead does
// otherwise, or none. One is left for the programs of each memory that are proven when the
// others have all that they may have, and the other way round. The caller holds mu.
func (e *Executor) processLimit(n requirements, instead *process) int {
	switch most := e.options.Processes; {
	case e.isFull(n):
		return 0
	case instead != nil && !instead.stuck:
		return most
	case e.count(func(p *process) bool { return p.canShare(n) && p.memory == n.memory }) == 0:
		return max(2*most, e.count(func(p *process) bool { return p.calls > 0 })) + 1
	default:
		return 2 * most // those that will not do need not ever be without a call
	}
}

// full reports whether no more processes may have calls such as one: those of programs
// that are proven and of others may have twice the usual number each, and three quarters of
// these are for the calls of owners that are kept apart. The caller holds mu.
func (e *Executor) isFull(n requirements) bool {
	most := 2 * e.options.Processes
	if e.count(func(p *process) bool { return p.hasSameClass(n) }) >= most {
		return true
	}
	return n.isolatedFor != nil && e.count(func(p *process) bool { return p.hasSameClass(n) && p.isolatedFor != nil }) >= most*3/4
}

// isTaken reports whether a process has calls of programs that are proven, or of others, as
// that of a call is.
func (p *process) hasSameClass(n requirements) bool {
	return p.calls > 0 && p.trusted == n.rating.isTrusted()
}

// isShared reports whether a process has calls with which a call may share one.
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

// queue is how many calls compute in a process before a quick one goes to another:
// a process that finds the next call at hand need not be woken for it.
const packSize = 8

// enough is how many calls compute in a process when a call had better go to
// another.
func (n requirements) packLimit() int64 {
	if n.rating == fast && !n.exclusive {
		return packSize
	}
	return 1
}

// best returns the process with the least to do, or for a quick call the first in
// which not enough calls compute; nil when none will do. The caller holds mu.
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

// does reports whether a call may have a process: one without calls, or with those of
// programs that are proven, or not, as its own is, and of its owner if that is kept apart.
// The caller holds mu.
func (p *process) accepts(n requirements) bool {
	if p.isKilled() || p.draining || p.exclusive || p.memory != n.memory {
		return false
	}
	return p.calls == 0 || !n.exclusive && p.canShare(n)
}

// load tells how much a process has to do: above all calls that compute. One that is
// stuck counts for three more of them: were it not to be had at all, those that all
// compute for long would pile up in the only process that is not. One that may have to
// collect first what calls of other programs have left behind is worth less than others.
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

// another takes the spare, or starts a process when there is none; nil when there
// are as many as most, of which none makes room. Instead is what does otherwise.
// The caller holds mu.
func (e *Executor) addProcess(n requirements, most int, instead *process) (p *process, err error) {
	if len(e.processes) >= most && !e.evictIdle(n, instead) {
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

// makeRoom ends the process that has had nothing to do for longest and will not do
// for a call, and reports whether there was one. Where another does instead, those
// of other memory alone are ended: programs are not compiled again for company. The
// caller holds mu.
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

// restock has a spare started in place of one that was taken. The caller holds mu.
func (e *Executor) replaceSpare() {
	if e.spareTaken {
		e.spareTaken = false
		e.reaping.Go(e.startSpare)
	}
}

// prepare starts a spare, also where there are as many processes as may be: it
// takes the place of the next that dies.
func (e *Executor) startSpare() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.spare != nil {
		return
	}
	spare, err := e.start()
	if err != nil {
		e.options.Logger.Warn("no spare process can be started", slog.Any("error", err))
		return
	}
	e.spare = spare
}

// release takes a call out of a process, and what it says of its program in.
func (e *Executor) release(p *process, n requirements, said rating) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.releaseLocked(p, n, said)
}

// learn takes in what a call says of its program or, if it does not end by itself, of its
// owner: others that call the program are not to be taken for that owner.
func (e *Executor) recordRating(n requirements, said rating) {
	switch {
	case said == misbehaved:
		n.owner.offences.add(n.program, e.ticks.Load())
	case !n.oneShot:
		e.history.update(n.program, said)
	}
}

// leave is release for a caller that holds mu.
func (e *Executor) releaseLocked(p *process, n requirements, said rating) {
	e.recordRating(n, said)
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

// forget takes out a process that has ended.
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
		e.options.Logger.Warn("a process that runs bodies has ended", slog.String("cause", d.Error()), slog.Int("calls", d.calls))
		e.reaping.Go(e.startSpare)
	}
}

type waiter struct {
	need   requirements
	result chan acquired // is sent what became of it, once
}

// found is a process, or why none can be had.
type acquired struct {
	process *process
	err     error
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

// giveUp takes back a call that waits no more. A process that has come meanwhile goes to
// others.
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
