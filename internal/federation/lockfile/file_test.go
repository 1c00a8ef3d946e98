package lockfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func TestWrite_roundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	for _, lock := range []*lockfile.Lock{shown(t), new(lockfile.Lock)} {
		if err := lockfile.Write(path, lock); err != nil {
			t.Fatal(err)
		}
		read, err := lockfile.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(lock), contents(read)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	checkAlone(t, path)
}

// checkAlone fails if another file is in the same directory.
func checkAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func TestRead_missing(t *testing.T) {
	if _, err := lockfile.Read(filepath.Join(t.TempDir(), "mcpd.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestReadOrNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	lock, err := lockfile.ReadOrNew(path)
	if err != nil || cmp.Diff(contents(new(lockfile.Lock)), contents(lock)) != "" {
		t.Errorf("a missing file: %v, %v", lock, err)
	}
	if err := os.WriteFile(path, []byte("not a lock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lock, err := lockfile.ReadOrNew(path); err == nil {
		t.Errorf("a broken file: %v", lock)
	}
}

func TestWrite_symlink(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{target, filepath.Join(folder, "nowhere")} {
		path := filepath.Join(folder, "mcpd.lock")
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		if err, want := lockfile.Write(path, shown(t)), "write lock: "+path+" is not a regular file"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		checkAlone(t, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(target); err != nil || string(kept) != "kept" {
		t.Errorf("the target has %q, %v", kept, err)
	}
}

func TestRead_notRegular(t *testing.T) {
	folder := t.TempDir()
	if _, err := lockfile.Read(folder); err == nil || err.Error() != "read lock: "+folder+" is not a regular file" {
		t.Errorf("the error is %v", err)
	}
	if err := lockfile.Write(folder, shown(t)); err == nil || err.Error() != "write lock: "+folder+" is not a regular file" {
		t.Errorf("the error is %v", err)
	}
}

func TestRead_invalid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "read lock: " + path + `: line 1: want "mcpd.lock 1", the version that this mcpd reads`
	if _, err := lockfile.Read(path); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestWrite_tooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	if err := lockfile.Write(path, shown(t)); err != nil {
		t.Fatal(err)
	}
	if err, want := lockfile.Write(path, huge(t)), "write lock: "+path+" would be longer than 64 MiB"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if _, err := lockfile.Read(path); err != nil {
		t.Errorf("the one before is not there: %v", err)
	}
	checkAlone(t, path)
}
