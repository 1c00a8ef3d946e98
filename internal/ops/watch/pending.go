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
	// fewPaths is the number of dirty paths that still look like one person saving files.
	fewPaths = 3
	// debounceFew and debounceMany are the debounce times for few and for many dirty paths.
	// With many paths and pauses between events, the debounce is at least gapsQuiet
	// times the longest pause.
	debounceFew  = 10 * time.Millisecond
	debounceMany = 100 * time.Millisecond
	gapsQuiet    = 3
	// longest bounds the wait under continuous changes.
	longest = 2 * time.Second
	// maxPaths bounds the paths of a [Change]; beyond it, the change is a rescan.
	maxPaths = 4096
	// never is the wait without a pending change.
	never = time.Duration(1<<63 - 1)
)

// pending collects unreported observations. The zero value is empty.
type pending struct {
	paths       map[string]struct{}
	rescan      bool
	many        bool
	first, last time.Time
	// avgGap is the longest time between two events.
	avgGap time.Duration
	// locked means that git held a lock at the last check; lockedSince is the start of
	// that lock, or zero.
	locked      bool
	lockedSince time.Time
	// ready means that the pending change may be sent.
	ready bool
}

// event adds the observation of an event at the time now.
func (p *pending) event(now time.Time, g observation) {
	switch {
	case g.empty() || p.first.IsZero() || p.locked:
	case p.ready: // a new burst after the last change became ready
		p.first, p.avgGap = now, 0
	default:
		p.avgGap = max(p.avgGap, now.Sub(p.last))
	}
	p.add(now, g)
}

// add adds an observation at the time now.
func (p *pending) add(now time.Time, g observation) {
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
	p.many = p.many || g.many || len(p.paths) > fewPaths
	if len(p.paths) > maxPaths {
		clear(p.paths)
		p.rescan = true
	}
}

// wait returns the remaining debounce time.
func (p *pending) wait(now time.Time) time.Duration {
	if p.first.IsZero() || p.ready {
		return never
	}
	quiet := debounceFew
	if p.many {
		quiet = max(debounceMany, gapsQuiet*p.avgGap)
	}
	return max(0, min(p.last.Add(quiet).Sub(now), p.first.Add(longest).Sub(now)))
}

// lock postpones the change while git holds a lock.
func (p *pending) lock(now time.Time) {
	if p.lockedSince.IsZero() {
		p.lockedSince = now
	}
	p.locked, p.many = true, true
	p.first, p.last = now, now
}

// unlock restarts the debounce after a lock is released.
func (p *pending) unlock(now time.Time) {
	p.locked = false
	p.first, p.last = now, now
}

func (p *pending) change() Change {
	return Change{Paths: slices.Sorted(maps.Keys(p.paths)), Rescan: p.rescan}
}

// lockTimeout is the maximum time that a change waits for a git lock. An older lock is
// stale, or belongs to a commit with an open editor.
const lockTimeout = 30 * time.Second

// A lock is a git lock file of a work tree.
type lock struct {
	path string
	info fs.FileInfo
}

func (l lock) same(m lock) bool {
	return l.info != nil && m.info != nil && os.SameFile(l.info, m.info) && l.info.ModTime().Equal(m.info.ModTime())
}

// locked reports whether git is changing files, so that the pending change may be half
// of a checkout. It returns false for a lock older than lockTimeout, and for a lock
// that already timed out.
func (w *Watcher) locked(p *pending) bool {
	l, isLocked := lockOn(w.targets)
	now := time.Now()
	switch {
	case isLocked && l.same(w.lockWaitExceeded), !isLocked && !p.locked:
		return false
	case !isLocked:
		// Events from before the release may still arrive.
		p.unlock(now)
		return true
	}
	first := p.lockedSince.IsZero()
	p.lock(now)
	if now.Sub(p.lockedSince) < lockTimeout && now.Sub(l.info.ModTime()) < lockTimeout {
		if first {
			w.log.Info("wait for git lock", slog.String("lock", l.path))
		}
		return true
	}
	p.unlock(now)
	w.lockWaitExceeded = l
	w.log.Warn("ignore stale git lock",
		slog.String("lock", l.path))
	return false
}

// lockOn returns a lock of a work tree that contains one of the targets.
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

// gitFolder returns the git directory of a work tree. In worktrees and submodules, a
// file .git names it.
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
