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
type need struct {
	owner  *owner // of the call
	memory int64
	// alone says that no other call may be in it.
	alone bool
	// nested is the call when others wait for it, which may hold all processes; nil
	// for any other.
	nested  *execution
	program [32]byte
	record  record // that of the program
	// apart is the owner when the call shares a process with calls of its own alone: those
	// of programs that are not proven, of one that has lately cost a process. Nil for others.
	apart *owner
	// once says that the program has this call alone, as code has that an agent wrote:
	// no process keeps it, and nothing is known of it.
	once bool
}

// beyond reports whether a process is started for such a call beyond the bound. One
// call of each depth may have that: those that it waits for are deeper, so that
// in the end none waits for itself. The caller holds mu.
func (e *Executor) beyond(n need) bool {
	return n.nested != nil && e.spared[n.nested.call.Depth] == nil
}

// acquire returns the process that is best for a call: the one with the fewest
// calls that compute, or another as long as there may be more.
func (e *Executor) acquire(ctx context.Context, n need) (*process, error) {
	e.mu.Lock()
	p, err := e.place(n)
	if p != nil || err != nil {
		e.mu.Unlock()
		return p, err
	}
	w := &waiter{need: n, come: make(chan found, 1)}
	e.waiting = append(e.waiting, w)
	e.mu.Unlock()
	select {
	case f := <-w.come:
		return f.process, f.err
	case <-ctx.Done():
		e.giveUp(w)
		return nil, ctx.Err()
	}
}

// place takes a process for a call; it is nil when the call has to wait for one. The
// caller holds mu.
func (e *Executor) place(n need) (p *process, err error) {
	if e.closed {
		return nil, errClosed
	}
	e.judge(&n)
	p = e.best(n)
	if p == nil || n.alone || p.busy.Load() >= n.enough() {
		instead := p
		if n.alone {
			instead = nil // one with nothing that other calls have left behind, if possible
		}
		var another *process
		if most := e.most(n, instead); most > 0 {
			another, err = e.another(n, most, instead)
		}
		if p != nil && p.isDoomed() {
			p = nil // it has made room in vain
		}
		if another == nil && err == nil && p == nil && e.beyond(n) {
			if another, err = e.another(n, len(e.processes)+1, nil); another != nil {
				e.spared[n.nested.call.Depth] = n.nested
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
	p.alone, p.proven, p.apart, p.rests = n.alone, n.record.isProven(), n.apart, 0
	n.owner.inProcess++
	e.watch()
	return p, nil
}

// judge looks up what is known of the program and the owner of a call. The caller holds mu.
func (e *Executor) judge(n *need) {
	look := e.looks.Load()
	n.record, n.apart = e.recordOf(n.program, n.once), nil
	if n.record.isProven() && n.owner.offences.has(n.program, look) {
		n.record = unruly
	}
	if !n.record.isProven() && n.owner.offences.isRecent(look) {
		n.apart = n.owner
	}
}

// most returns how many processes there may be for a call, for which instead does
// otherwise, or none. One is left for the programs of each memory that are proven when the
// others have all that they may have, and the other way round. The caller holds mu.
func (e *Executor) most(n need, instead *process) int {
	switch most := e.options.Processes; {
	case e.full(n):
		return 0
	case instead != nil && !instead.stuck:
		return most
	case e.count(func(p *process) bool { return p.isShared(n) && p.memory == n.memory }) == 0:
		return max(2*most, e.count(func(p *process) bool { return p.calls > 0 })) + 1
	default:
		return 2 * most // those that will not do need not ever be without a call
	}
}

// full reports whether no more processes may have calls such as one: those of programs
// that are proven and of others may have twice the usual number each, and three quarters of
// these are for the calls of owners that are kept apart. The caller holds mu.
func (e *Executor) full(n need) bool {
	most := 2 * e.options.Processes
	if e.count(func(p *process) bool { return p.isTaken(n) }) >= most {
		return true
	}
	return n.apart != nil && e.count(func(p *process) bool { return p.isTaken(n) && p.apart != nil }) >= most*3/4
}

// isTaken reports whether a process has calls of programs that are proven, or of others, as
// that of a call is.
func (p *process) isTaken(n need) bool { return p.calls > 0 && p.proven == n.record.isProven() }

// isShared reports whether a process has calls with which a call may share one.
func (p *process) isShared(n need) bool { return p.isTaken(n) && p.apart == n.apart }

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
const queue = 8

// enough is how many calls compute in a process when a call had better go to
// another.
func (n need) enough() int64 {
	if n.record == quick && !n.alone {
		return queue
	}
	return 1
}

// best returns the process with the least to do, or for a quick call the first in
// which not enough calls compute; nil when none will do. The caller holds mu.
func (e *Executor) best(n need) (best *process) {
	enough, full := n.enough(), e.full(n)
	for _, p := range e.processes {
		if !p.does(n) || full && p.calls == 0 {
			continue
		}
		if enough > 1 && !p.stuck && p.busy.Load() < enough && p.proven == n.record.isProven() {
			return p
		}
		if best == nil || p.load(n) < best.load(n) {
			best = p
		}
	}
	return best
}

// does reports whether a call may have a process: one without calls, or with those of
// programs that are proven, or not, as its own is, and of its owner if that is kept apart.
// The caller holds mu.
func (p *process) does(n need) bool {
	if p.isDoomed() || p.drained || p.alone || p.memory != n.memory {
		return false
	}
	return p.calls == 0 || !n.alone && p.isShared(n)
}

// load tells how much a process has to do: above all calls that compute. One that is
// stuck counts for three more of them: were it not to be had at all, those that all
// compute for long would pile up in the only process that is not. One that may have to
// collect first what calls of other programs have left behind is worth less than others.
// The caller holds mu.
func (p *process) load(n need) int64 {
	load := p.busy.Load()<<20 + int64(p.calls)
	if p.proven != n.record.isProven() {
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
func (e *Executor) another(n need, most int, instead *process) (p *process, err error) {
	if len(e.processes) >= most && !e.makeRoom(n, instead) {
		return nil, nil
	}
	if p = e.spare; p != nil && (p.memory == 0 || p.memory == n.memory) {
		e.spare, e.asked, e.bare = nil, nil, true
	} else if p, err = e.start(); err != nil {
		return nil, err
	}
	if p.memory == 0 {
		p.give(n.memory, e.allowance)
	}
	e.processes = append(e.processes, p)
	return p, nil
}

// makeRoom ends the process that has had nothing to do for longest and will not do
// for a call, and reports whether there was one. Where another does instead, those
// of other memory alone are ended: programs are not compiled again for company. The
// caller holds mu.
func (e *Executor) makeRoom(n need, instead *process) bool {
	longest := -1
	for i, p := range e.processes {
		if p.calls == 0 && (instead == nil || p.memory != n.memory) && (longest < 0 || p.rests > e.processes[longest].rests) {
			longest = i
		}
	}
	if longest < 0 {
		return false
	}
	e.processes[longest].kill(endRested)
	e.processes = slices.Delete(e.processes, longest, longest+1)
	return true
}

// restock has a spare started in place of one that was taken. The caller holds mu.
func (e *Executor) restock() {
	if e.bare {
		e.bare = false
		e.reaping.Go(e.prepare)
	}
}

// prepare starts a spare, also where there are as many processes as may be: it
// takes the place of the next that dies.
func (e *Executor) prepare() {
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
func (e *Executor) release(p *process, n need, said record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leave(p, n, said)
}

// learn takes in what a call says of its program or, if it does not end by itself, of its
// owner: others that call the program are not to be taken for that owner.
func (e *Executor) learn(n need, said record) {
	switch {
	case said == unruly:
		n.owner.offences.add(n.program, e.looks.Load())
	case !n.once:
		e.history.learn(n.program, said)
	}
}

// leave is release for a caller that holds mu.
func (e *Executor) leave(p *process, n need, said record) {
	e.learn(n, said)
	if x := n.nested; x != nil && e.spared[x.call.Depth] == x {
		delete(e.spared, x.call.Depth)
	}
	n.owner.inProcess--
	p.calls--
	p.alone, p.stuck = false, p.stuck && p.calls > 0
	if p.calls == 0 && p.drained {
		p.kill(endRested)
		e.processes = slices.DeleteFunc(e.processes, func(other *process) bool { return other == p })
	}
	e.wake()
}

// forget takes out a process that has ended.
func (e *Executor) forget(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.processes, p); i >= 0 {
		e.processes = slices.Delete(e.processes, i, i+1)
	}
	if e.spare == p {
		e.spare = nil
	}
	e.wake()
	if d := p.death(); !e.closed && d.cause != endRested && p != e.asked {
		e.counts.Lost++
		*d.counted(&e.counts)++
		e.options.Logger.Warn("a process that runs bodies has ended", slog.String("cause", d.Error()), slog.Int("calls", d.left))
		e.reaping.Go(e.prepare)
	}
}

type waiter struct {
	need need
	come chan found // is sent what became of it, once
}

// found is a process, or why none can be had.
type found struct {
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
	if f := <-w.come; f.process != nil {
		e.leave(f.process, w.need, unknown)
	}
}
