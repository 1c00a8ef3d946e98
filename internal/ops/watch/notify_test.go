package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

func TestNoiseBesideTheRootIsNotReported(t *testing.T) {
	n, err := newNotifier(targetsIn(t, "t", "t/.git"), func(name string) bool { return name == ".git" }, fsnotify.NewWatcher)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	dir := filepath.Dir(n.targets[0].abs)
	for _, path := range []string{"other", "tt", "t2/x", "t/.git", "t/.git/index", "t/a/.git/x"} {
		if g := n.see(fsnotify.Event{Name: filepath.Join(dir, path), Op: fsnotify.Create}); !g.empty() {
			t.Errorf("%s is reported as %v", path, g)
		}
	}
	for _, path := range []string{"t", "t/a", "t/.github/x", "t/..data"} {
		if g := n.see(fsnotify.Event{Name: filepath.Join(dir, path), Op: fsnotify.Create}); g.empty() {
			t.Errorf("%s is not reported", path)
		}
	}
	if n.set.has(filepath.Join(dir, "t/.git")) {
		t.Error("a skipped folder is watched")
	}
}

func TestLinksInACircleLeadNowhere(t *testing.T) {
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
