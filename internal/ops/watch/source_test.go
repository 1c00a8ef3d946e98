package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

func TestPoller_changes(t *testing.T) {
	rows := []struct {
		name string
		do   func(t *testing.T, dir string)
		want []string
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"edit", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a"), "longer than before") }, []string{"t/a"}},
		{"edit with equal size and time", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "a")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, "secnd")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, []string{"t/a"}},
		{"touched file", func(t *testing.T, dir string) {
			if err := os.Chtimes(filepath.Join(dir, "a"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, []string{"t/a"}},
		{"new file in a new directory", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "n"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "n/x"), "x")
		}, []string{"t/n", "t/n/x"}},
		{"deleted file", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
		}, []string{"t/a"}},
		{"changed link", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("b", filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
		}, []string{"t/l"}},
		{"skipped directory", func(t *testing.T, dir string) { write(t, filepath.Join(dir, ".git/x"), "x") }, nil},
		{"single file", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "../f"), "x") }, []string{"f"}},
		{"new glob match", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "../a.v"), "x")
			write(t, filepath.Join(dir, "../a.w"), "x")
		}, []string{"a.v"}},
		{"removed root", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, []string{"t", "t/a", "t/l"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			targets := targetsIn(t, "t", "t/.git")
			dir := targets[0].abs
			targets = append(targets, target{path: "f", abs: filepath.Join(dir, "../f"), kind: fileTarget},
				target{path: "*.v", abs: filepath.Join(dir, "../*.v"), kind: globTarget})
			write(t, filepath.Join(dir, "a"), "first")
			if err := os.Symlink("a", filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
			p := newPoller(targets, func(name string) bool { return name == ".git" })
			r.do(t, dir)
			got := found(t, p)
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("dirty (-want +got):\n%s", diff)
			}
			if again := found(t, p); again != nil {
				t.Errorf("found again: %v", again)
			}
		})
	}
}

// The poller trusts the timestamp of an old file and does not read it again.
func TestPoller_skipsOldFiles(t *testing.T) {
	targets := targetsIn(t, "t", "t")
	path := filepath.Join(targets[0].abs, "a")
	write(t, path, "first")
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	p := newPoller(targets, func(string) bool { return false })
	if s := p.seen["t/a"]; s.sum != (fileStamp{}).sum {
		t.Error("an old file was read")
	}
	if got := found(t, p); got != nil {
		t.Errorf("found %v", got)
	}
}

func found(t *testing.T, p *poller) []string {
	t.Helper()
	g, err := p.check()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(g.paths)
	return g.paths
}

func TestWatcher_ignoresSiblings(t *testing.T) {
	n, err := newNotifier(targetsIn(t, "t", "t/.git"), func(name string) bool { return name == ".git" }, fsnotify.NewWatcher)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	dir := filepath.Dir(n.targets[0].abs)
	for _, path := range []string{"other", "tt", "t2/x", "t/.git", "t/.git/index", "t/a/.git/x"} {
		if g := n.handle(fsnotify.Event{Name: filepath.Join(dir, path), Op: fsnotify.Create}); !g.empty() {
			t.Errorf("%s reported as %v", path, g)
		}
	}
	for _, path := range []string{"t", "t/a", "t/.github/x", "t/..data"} {
		if g := n.handle(fsnotify.Event{Name: filepath.Join(dir, path), Op: fsnotify.Create}); g.empty() {
			t.Errorf("%s not reported", path)
		}
	}
	if n.set.has(filepath.Join(dir, "t/.git")) {
		t.Error("a skipped folder is watched")
	}
}

func TestWatcher_linkCycle(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"a": "b", "b": "a", "self": "self", "deep": "deep/x"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
		if _, real := follow(filepath.Join(dir, from)); real != "" {
			t.Errorf("%s leads to %s", from, real)
		}
	}
}

func targetsIn(t *testing.T, root string, folders ...string) []target {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []target{{path: root, abs: filepath.Join(dir, root)}}
}
