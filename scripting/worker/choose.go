package worker

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
)

func uvarint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// acquire returns the process that is best for a call: the one with the fewest
// calls that compute, or another as long as there may be more.
func (e *Executor) acquire(ctx context.Context, alone bool) (*peer, error) {
	for {
		p, free, err := e.choose(alone)
		if p != nil || err != nil {
			return p, err
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// choose is acquire for what need not wait; free is closed when it is worth
// another try.
func (e *Executor) choose(alone bool) (p *peer, free <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, errClosed
	}
	p = e.best(alone)
	if (p == nil || p.busy.Load() > 0) && len(e.peers) < e.options.Processes {
		if p, err = e.another(); err != nil {
			return nil, nil, err
		}
	}
	if p == nil {
		wait := make(chan struct{})
		e.waiting = append(e.waiting, wait)
		return nil, wait, nil
	}
	p.calls++
	p.alone, p.rests = alone, 0
	e.watch()
	return p, nil, nil
}

// best returns the process with the least to do, nil when none will do. The
// caller holds mu.
func (e *Executor) best(alone bool) (best *peer) {
	for _, p := range e.peers {
		if p.alone || alone && p.calls > 0 || p.full() {
			continue
		}
		if best == nil || p.load() < best.load() {
			best = p
		}
	}
	return best
}

// load tells how much a process has to do: above all calls that compute.
func (p *peer) load() int64 { return p.busy.Load()<<20 + int64(p.calls) }

// another takes the spare, or starts a process when there is none yet. The
// caller holds mu.
func (e *Executor) another() (p *peer, err error) {
	if p = e.spare; p == nil {
		if p, err = e.start(); err != nil {
			return nil, err
		}
	}
	e.spare = nil
	e.peers = append(e.peers, p)
	e.reaping.Go(e.prepare)
	return p, nil
}

// prepare starts a spare.
func (e *Executor) prepare() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.spare != nil || len(e.peers) >= e.options.Processes {
		return
	}
	spare, err := e.start()
	if err != nil {
		e.options.Logger.Warn("no spare process can be started", slog.Any("error", err))
		return
	}
	e.spare = spare
}

// release takes a call out of a process.
func (e *Executor) release(p *peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.calls--
	p.alone = false
	if p.calls == 0 && p.full() {
		p.end(endRested)
	}
	e.wake()
}

// wake has those try again that wait for a process. The caller holds mu.
func (e *Executor) wake() {
	for _, w := range e.waiting {
		close(w)
	}
	e.waiting = nil
}

// forget takes out a process that has ended.
func (e *Executor) forget(p *peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.peers, p); i >= 0 {
		e.peers = slices.Delete(e.peers, i, i+1)
	}
	if e.spare == p {
		e.spare = nil
	}
	e.wake()
	if d := p.death(); !e.closed && d.cause != endRested {
		e.options.Logger.Warn("a process that runs bodies has ended", slog.String("cause", d.Error()), slog.Int("calls", d.left))
		e.reaping.Go(e.prepare)
	}
}
