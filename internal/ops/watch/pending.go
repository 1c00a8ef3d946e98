package watch

import (
	"maps"
	"slices"
	"time"
)

const (
	// few is how many dirty paths are still one person saving files.
	few = 3
	// quietFew and quietMany are how long nothing must happen before few or
	// many dirty paths are reported. Many wait longer, gapsQuiet times the
	// longest gap, where the writer has paused before.
	quietFew  = 10 * time.Millisecond
	quietMany = 100 * time.Millisecond
	gapsQuiet = 3
	// longest bounds the wait where it never becomes quiet.
	longest = 2 * time.Second
	// maxPaths bounds the paths of a [Change]; beyond, it is a rescan.
	maxPaths = 4096
	// never is a wait with nothing to wait for.
	never = time.Duration(1<<63 - 1)
)

// pending is what was seen and not reported yet. The zero pending is empty.
type pending struct {
	paths       map[string]struct{}
	rescan      bool
	many        bool
	first, last time.Time
	// gap is the longest time between two events.
	gap time.Duration
	// locked says that git held a lock when last looked, and lockedSince when
	// it was first seen to hold one; zero when it never was.
	locked      bool
	lockedSince time.Time
	// ready is set when the pending change may be sent.
	ready bool
}

// event takes in what an event meant at the time now.
func (p *pending) event(now time.Time, g glance) {
	switch {
	case g.empty() || p.first.IsZero() || p.locked:
	case p.ready: // a burst of its own, which came before the last was received
		p.first, p.gap = now, 0
	default:
		p.gap = max(p.gap, now.Sub(p.last))
	}
	p.add(now, g)
}

// add takes in what was seen at the time now.
func (p *pending) add(now time.Time, g glance) {
	if g.empty() {
		return
	}
	if p.first.IsZero() {
		p.first = now
		p.paths = map[string]struct{}{}
	}
	p.last = now
	p.ready = false
	p.rescan = p.rescan || g.rescan
	for _, path := range g.paths {
		p.paths[path] = struct{}{}
	}
	p.many = p.many || g.many || len(p.paths) > few
	if len(p.paths) > maxPaths {
		clear(p.paths)
		p.rescan = true
	}
}

// wait returns how long to wait until things count as quiet.
func (p *pending) wait(now time.Time) time.Duration {
	if p.first.IsZero() || p.ready {
		return never
	}
	quiet := quietFew
	if p.many {
		quiet = max(quietMany, gapsQuiet*p.gap)
	}
	return max(0, min(p.last.Add(quiet).Sub(now), p.first.Add(longest).Sub(now)))
}

// lock has a change wait on while git holds a lock, for more to come.
func (p *pending) lock(now time.Time) {
	if p.lockedSince.IsZero() {
		p.lockedSince = now
	}
	p.locked, p.many = true, true
	p.first, p.last = now, now
}

// unlock has a change wait once more after a lock is gone.
func (p *pending) unlock(now time.Time) {
	p.locked = false
	p.first, p.last = now, now
}

// change returns what to report.
func (p *pending) change() Change {
	return Change{Paths: slices.Sorted(maps.Keys(p.paths)), Rescan: p.rescan}
}
