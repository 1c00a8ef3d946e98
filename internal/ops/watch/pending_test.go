package watch

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPending_debounce(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	type seen struct {
		after time.Duration
		observation
	}
	one := func(after time.Duration, paths ...string) seen { return seen{after, observation{paths: paths}} }
	rows := []struct {
		name string
		seen []seen
		now  time.Duration
		want time.Duration
	}{
		{"nothing", nil, 0, never},
		{"empty observation", []seen{one(0)}, 0, never},
		{"one path", []seen{one(0, "a")}, 0, 10 * time.Millisecond},
		{"same path restarts", []seen{one(0, "a"), one(8*time.Millisecond, "a")}, 9 * time.Millisecond, 9 * time.Millisecond},
		{"three paths", []seen{one(0, "a", "b", "c")}, 0, 10 * time.Millisecond},
		{"four paths", []seen{one(0, "a", "b", "c", "d")}, 0, 100 * time.Millisecond},
		{"pause before four paths", []seen{one(0, "a"), one(70*time.Millisecond, "b", "c", "d")}, 70 * time.Millisecond, 210 * time.Millisecond},
		{"pause before three paths", []seen{one(0, "a"), one(70*time.Millisecond, "b")}, 70 * time.Millisecond, 10 * time.Millisecond},
		{"short pause", []seen{one(0, "a"), one(30*time.Millisecond, "b", "c", "d")}, 30 * time.Millisecond, 100 * time.Millisecond},
		{"rescan", []seen{{0, observation{rescan: true}}}, 0, 10 * time.Millisecond},
		{"announced burst", []seen{{0, observation{rescan: true, many: true}}}, 0, 100 * time.Millisecond},
		{"debounce over", []seen{one(0, "a")}, time.Second, 0},
		{"maximum wait", []seen{one(0, "a"), one(1995*time.Millisecond, "a")}, 1996 * time.Millisecond, 4 * time.Millisecond},
		{"maximum wait over", []seen{one(0, "a"), one(2010*time.Millisecond, "a")}, 2011 * time.Millisecond, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var p pending
			for _, s := range r.seen {
				p.event(at(s.after), s.observation)
			}
			if got := p.wait(at(r.now)); got != r.want {
				t.Errorf("wait %v, want %v", got, r.want)
			}
		})
	}
}

func TestPending_sortedPaths(t *testing.T) {
	var p pending
	p.add(time.Unix(1, 0), observation{paths: []string{"b", "a"}})
	p.add(time.Unix(1, 0), observation{paths: []string{"a", "c"}, rescan: true})
	p.add(time.Unix(1, 0), observation{paths: []string{"b"}})
	want := Change{Paths: []string{"a", "b", "c"}, Rescan: true}
	if diff := cmp.Diff(want, p.change()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestPending_bounded(t *testing.T) {
	var p pending
	for i := range 10 * maxPaths {
		p.add(time.Unix(1, 0), observation{paths: []string{fmt.Sprint(i)}})
		if len(p.paths) > maxPaths {
			t.Fatalf("%d paths stored, want at most %d", len(p.paths), maxPaths)
		}
	}
	if !p.change().Rescan {
		t.Error("paths were dropped without a rescan")
	}
}

func TestWatcher_changeWhileReady(t *testing.T) {
	var p pending
	p.add(time.Unix(1, 0), observation{paths: []string{"a"}})
	p.ready = true
	if got := p.wait(time.Unix(1, 0)); got != never {
		t.Errorf("a ready change waits %v, want never", got)
	}
	p.add(time.Unix(1, 0), observation{paths: []string{"b"}})
	if p.ready {
		t.Error("the change is ready directly after an event")
	}
}

// repository creates a work tree with a tools directory and a Watcher with a fake source.
func repository(t *testing.T, test func(t *testing.T, dir string, w *Watcher, show func(string))) {
	dir := t.TempDir()
	for _, folder := range []string{".git", "tools.d"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		w.targets = []target{{path: "tools.d", abs: filepath.Join(dir, "tools.d"), kind: rootTarget}}
		test(t, dir, w, show)
	})
}

func TestWatcher_waitsForGitLock(t *testing.T) {
	repository(t, func(t *testing.T, dir string, w *Watcher, show func(string)) {
		got := make(chan Change, 3)
		go func() {
			for c := range w.Changes() {
				got <- c
			}
		}()
		lock := filepath.Join(dir, ".git", "index.lock")
		write(t, lock, "")
		show("a")
		time.Sleep(20 * time.Second)
		show("b")
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		// The lock was seen released while c was still arriving.
		time.Sleep(debounceMany * 3 / 2)
		show("c")
		last := time.Now()
		if diff := cmp.Diff(Change{Paths: []string{"a", "b", "c"}}, <-got); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
		if took := time.Since(last); took > 2*debounceMany {
			t.Errorf("it took %v after the last of the files", took)
		}
	})
}

func TestWatcher_lockTimeout(t *testing.T) {
	repository(t, func(t *testing.T, dir string, w *Watcher, show func(string)) {
		var log bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		lock := filepath.Join(dir, ".git", "index.lock")
		write(t, lock, "")
		start := time.Now()
		show("a")
		<-w.Changes()
		if took := time.Since(start); took < lockTimeout || took > lockTimeout+2*debounceMany {
			t.Errorf("it took %v, want %v", took, lockTimeout)
		}
		start = time.Now()
		show("a")
		<-w.Changes()
		if took := time.Since(start); took != debounceFew {
			t.Errorf("the next change took %v, want %v", took, debounceFew)
		}
		synctest.Wait()
		for _, said := range []string{"wait for git lock", "ignore stale git lock"} {
			if n := strings.Count(log.String(), said); n != 1 {
				t.Errorf("%d log records %q, want one:\n%s", n, said, &log)
			}
		}
	})
}

func TestWatcher_staleLock(t *testing.T) {
	repository(t, func(t *testing.T, dir string, w *Watcher, show func(string)) {
		lock := filepath.Join(dir, ".git", "index.lock")
		write(t, lock, "")
		old := time.Now().Add(-lockTimeout)
		if err := os.Chtimes(lock, old, old); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		show("a")
		<-w.Changes()
		if took := time.Since(start); took != debounceFew {
			t.Errorf("it took %v, want %v", took, debounceFew)
		}
	})
}

func TestWatcher_successiveLocks(t *testing.T) {
	repository(t, func(t *testing.T, dir string, w *Watcher, show func(string)) {
		lock := filepath.Join(dir, ".git", "index.lock")
		write(t, lock, "")
		start := time.Now()
		show("a")
		go func() { // a rebase: git releases its lock between two commits
			for time.Since(start) < 2*lockTimeout {
				time.Sleep(131 * time.Millisecond)
				_ = os.Remove(lock)
				time.Sleep(20 * time.Millisecond)
				_ = os.WriteFile(lock, nil, 0o600)
			}
		}()
		<-w.Changes()
		if took := time.Since(start); took < lockTimeout || took > lockTimeout+longest {
			t.Errorf("it took %v, want about %v", took, lockTimeout)
		}
		time.Sleep(2 * lockTimeout)
		synctest.Wait()
	})
}

func TestGitLocks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, folder := range []string{"repo/.git/worktrees/w", "repo/tools.d/sub", "worktree/tools.d", "sub/tools.d", "repo/.git/modules/sub", "plain/tools.d", "own/.git"} {
		if err := os.MkdirAll(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, at("worktree/.git"), "gitdir: "+at("repo/.git/worktrees/w")+"\n")
	write(t, at("sub/.git"), "gitdir: ../repo/.git/modules/sub\n")
	write(t, at("plain/.git"), "no work tree")
	if err := os.Symlink(at("repo/tools.d"), at("plain/linked")); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, target, lock string
	}{
		{"above the directory", "repo/tools.d/sub", "repo/.git/index.lock"},
		{"missing directory", "repo/none/at/all", "repo/.git/index.lock"},
		{"in the directory", "own", "own/.git/index.lock"},
		{"through a link", "plain/linked", "repo/.git/index.lock"},
		{"worktree", "worktree/tools.d", "repo/.git/worktrees/w/index.lock"},
		{"submodule", "sub/tools.d", "repo/.git/modules/sub/index.lock"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			targets := []target{{abs: at("plain/tools.d"), kind: rootTarget}, {abs: at(r.target), kind: rootTarget}}
			if l, isLocked := lockOn(targets); isLocked {
				t.Fatalf("%s is held before it exists", l.path)
			}
			write(t, at(r.lock), "")
			defer func() { _ = os.Remove(at(r.lock)) }()
			if l, isLocked := lockOn(targets); !isLocked || l.path != at(r.lock) {
				t.Errorf("found the lock %q, want %s", l.path, at(r.lock))
			}
		})
	}
}
