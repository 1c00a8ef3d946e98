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
	// many dirty paths are reported.
	quietFew  = 10 * time.Millisecond
	quietMany = 100 * time.Millisecond
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
	// ready is set when the pending change may be sent.
	ready bool
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
		quiet = quietMany
	}
	return max(0, min(p.last.Add(quiet).Sub(now), p.first.Add(longest).Sub(now)))
}

// change returns what to report.
func (p *pending) change() Change {
	return Change{Paths: slices.Sorted(maps.Keys(p.paths)), Rescan: p.rescan}
}
