package loader_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/internal/language/loader"
)

func TestResolver_links(t *testing.T) {
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
	var roots loader.Resolver
	for name, want := range map[string]string{
		"real": at("real"), "link": at("real"), "link/sub": at("real/sub"),
		"link/new": at("real/new") + " (file does not exist)", "real/a/b": at("real/a/b") + " (file does not exist)",
		"dangling": at("dangling") + " (file does not exist)",
		"file":     at("file") + " (it is not a directory)", "loop": " (EvalSymlinks: too many links)", "file/x": " (not a directory)",
	} {
		real, err := roots.Resolve(at(name))
		if err != nil {
			real += " (" + err.Error() + ")"
		}
		if real != want {
			t.Errorf("%s: got %s, want %s", name, real, want)
		}
	}
	if real, err := roots.Resolve("relative"); real != "" || err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("relative path: got %q, %v", real, err)
	}
	if err := errors.Join(os.Remove(at("link")), os.Symlink("real/sub", at("link"))); err != nil {
		t.Fatal(err)
	}
	if real, _ := roots.Resolve(at("link")); real != at("real") {
		t.Errorf("the second result differs: %s", real)
	}
}

func TestPath_onlyOnDisk(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := loader.Path(loader.Dir("x/../y")); got != filepath.Join(wd, "y") {
		t.Errorf("got %s", got)
	}
	if got := loader.Path(fstest.MapFS{}); got != "" {
		t.Errorf("directory in memory: path %s", got)
	}
	if got := loader.Path(nil); got != "" {
		t.Errorf("nil: path %s", got)
	}
}

func TestResolveProgram_permissions(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	script := []byte("#!/bin/true\n")
	err = errors.Join(
		os.Mkdir(at("bin"), 0o755), os.Mkdir(at("open"), 0o700), os.Mkdir(at("sticky"), 0o700),
		os.WriteFile(at("bin/good"), script, 0o755), os.WriteFile(at("bin/plain"), script, 0o644), os.WriteFile(at("bin/written"), script, 0o755),
		os.WriteFile(at("open/good"), script, 0o755), os.WriteFile(at("sticky/good"), script, 0o755),
		os.Symlink("bin/good", at("link")), os.Symlink("../bin/good", at("open/link")), os.Symlink("open/good", at("away")), os.Symlink("nowhere", at("dangling")),
		os.Chmod(at("bin/written"), 0o777), os.Chmod(at("open"), 0o777), os.Chmod(at("sticky"), 0o777|os.ModeSticky),
	)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(at("open")); err != nil || info.Mode().Perm() != 0o777 {
		t.Skip("SKIPPED: this system has no such modes")
	}
	for name, want := range map[string]string{
		"bin/good": "bin/good", "link": "bin/good", "sticky/good": "sticky/good",
		"bin":          "bin (it is a directory)",
		"bin/plain":    "bin/plain (it is not executable)",
		"bin/written":  "bin/written (it is writable by every user)",
		"open/good":    "open/good (its directory TOP/open is writable by every user)",
		"open/link":    "bin/good (its directory TOP/open is writable by every user)",
		"away":         "open/good (its directory TOP/open is writable by every user)",
		"bin/none":     "bin/none (file does not exist)",
		"none/none":    "none/none (file does not exist)",
		"dangling":     "dangling (file does not exist)",
		"open/none":    "open/none (its directory TOP/open is writable by every user)",
		"sticky/none":  "sticky/none (its directory TOP/sticky is writable by every user)",
		"bin/good/sub": " (not a directory)",
	} {
		var roots loader.Resolver
		real, err := roots.ResolveProgram(at(name))
		got := strings.TrimPrefix(real, top+"/")
		if err != nil {
			got += " (" + strings.ReplaceAll(err.Error(), top, "TOP") + ")"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
