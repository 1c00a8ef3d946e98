package watch

import (
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func (p *pending) change() Change {
	return Change{Paths: slices.Sorted(maps.Keys(p.paths)), Rescan: p.rescan}
}

// lockPatience is how long a change waits for a lock of git. An older lock was
// left behind, or belongs to a commit whose message somebody is writing.
const lockPatience = 30 * time.Second

// A lock is the file that git keeps while it changes a work tree.
type lock struct {
	path string
	info fs.FileInfo
}

func (l lock) same(m lock) bool {
	return l.info != nil && m.info != nil && os.SameFile(l.info, m.info) && l.info.ModTime().Equal(m.info.ModTime())
}

// locked reports whether git is in the midst of changing files, so that what
// is pending may be half of a checkout. No change waits for locks longer than
// lockPatience, and none for a lock that one has waited for in vain.
func (w *Watcher) locked(p *pending) bool {
	l, held := lockOn(w.targets)
	now := time.Now()
	switch {
	case held && l.same(w.outwaited), !held && !p.locked:
		return false
	case !held:
		// What was written before the lock went may still be on its way.
		p.unlock(now)
		return true
	}
	first := p.lockedSince.IsZero()
	p.lock(now)
	if now.Sub(p.lockedSince) < lockPatience && now.Sub(l.info.ModTime()) < lockPatience {
		if first {
			w.log.Info("git is changing files: they are loaded when it is done", slog.String("lock", l.path))
		}
		return true
	}
	p.unlock(now)
	w.outwaited = l
	w.log.Warn("git has held a lock for long: files are loaded without waiting for its end; remove the lock if no git runs",
		slog.String("lock", l.path))
	return false
}

// lockOn returns a lock on a work tree that holds one of the targets.
func lockOn(targets []target) (lock, bool) {
	for _, t := range targets {
		_, at := follow(t.abs)
		if at == "" {
			at = t.abs
		}
		for {
			path := filepath.Join(gitFolder(at), "index.lock")
			if info, err := os.Lstat(path); err == nil {
				return lock{path, info}, true
			}
			if at == filepath.Dir(at) {
				break
			}
			at = filepath.Dir(at)
		}
	}
	return lock{}, false
}

// gitFolder returns where git keeps the state of a work tree. Worktrees and
// submodules have a file .git that names the folder.
func gitFolder(worktree string) string {
	git := filepath.Join(worktree, ".git")
	info, err := os.Stat(git)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return git
	}
	text, err := os.ReadFile(git)
	named, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	switch {
	case err != nil || !ok:
		return git
	case filepath.IsAbs(named):
		return named
	default:
		return filepath.Join(worktree, named)
	}
}
