package watch

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockPatience is how long a change waits for a lock of git. An older lock was
// left behind, or belongs to a commit whose message somebody is writing.
const lockPatience = 30 * time.Second

// A lock is the file that git keeps while it changes a work tree.
type lock struct {
	path string
	info fs.FileInfo
}

// same reports whether two locks are one.
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
