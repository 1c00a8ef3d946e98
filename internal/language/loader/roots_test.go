package loader_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/internal/language/loader"
)

func TestARootIsFoundBehindItsLinks(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	err = errors.Join(
		os.MkdirAll(at("real/sub"), 0o755), os.WriteFile(at("file"), nil, 0o644),
		os.Symlink("real", at("link")), os.Symlink("nowhere", at("dangling")), os.Symlink("loop", at("loop")),
	)
	if err != nil {
		t.Fatal(err)
	}
	var roots loader.Roots
	for name, want := range map[string]string{
		"real": at("real"), "link": at("real"), "link/sub": at("real/sub"),
		"link/new": at("real/new") + " (file does not exist)", "real/a/b": at("real/a/b") + " (file does not exist)",
		"dangling": at("dangling") + " (file does not exist)",
		"file":     at("file") + " (it is not a folder)", "loop": " (EvalSymlinks: too many links)", "file/x": " (not a directory)",
	} {
		real, err := roots.Find(at(name))
		if err != nil {
			real += " (" + err.Error() + ")"
		}
		if real != want {
			t.Errorf("%s: got %s, want %s", name, real, want)
		}
	}
	if real, err := roots.Find("relative"); real != "" || err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a relative path: got %q, %v", real, err)
	}
	if err := errors.Join(os.Remove(at("link")), os.Symlink("real/sub", at("link"))); err != nil {
		t.Fatal(err)
	}
	if real, _ := roots.Find(at("link")); real != at("real") {
		t.Errorf("who asks again hears something else: %s", real)
	}
}

func TestOnlyAFolderOfTheDiskHasAPath(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := loader.Path(loader.Dir("x/../y")); got != filepath.Join(wd, "y") {
		t.Errorf("got %s", got)
	}
	if got := loader.Path(fstest.MapFS{}); got != "" {
		t.Errorf("a folder in memory is at %s", got)
	}
	if got := loader.Path(nil); got != "" {
		t.Errorf("no folder is at %s", got)
	}
}
