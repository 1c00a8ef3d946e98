package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpen_fileMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no file modes on this system")
	}
	s, path := opened(t)
	if _, err := s.SealingKey(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", filepath.Base(name), info.Mode().Perm(), err, want)
		}
	}
}

func TestOpen_exclusive(t *testing.T) {
	s, path := opened(t)
	wantRefused(t, path, "is in use by another process")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, fixed, 0)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// wantRefused checks that a file is rejected for a reason.
func wantRefused(t testing.TB, path, why string) {
	t.Helper()
	s, err := Open(path, fixed, 0)
	if err == nil {
		s.Close()
		t.Fatalf("the file was opened; want: %s", why)
	}
	if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("error %q; want the path and %q", err, why)
	}
}

func TestOpen_unsafeMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no file modes on this system")
	}
	for name, c := range map[string]struct {
		spoil func(path string) error
		why   string
	}{
		"others write": {func(path string) error { return os.Chmod(path, 0o602) }, "accessible to other users"},
		"others read":  {func(path string) error { return os.Chmod(path, 0o640) }, "accessible to other users"},
		"others write the log": {func(path string) error {
			return errors.Join(os.WriteFile(path+"-wal", nil, 0o600), os.Chmod(path+"-wal", 0o602))
		}, "accessible to other users"},
		"others own the folder": {func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) }, "accessible to other users"},
		"a link":                {func(path string) error { return link(path, path) }, "not a regular file"},
		"the log is a link":     {func(path string) error { return link(path, path+"-wal") }, "not a regular file"},
		"another name":          {func(path string) error { return os.Link(path, path+".copy") }, "another hard link"},
		"a folder":              {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := opened(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, path, c.why)
		})
	}
}

// link replaces a file by a link, and moves the file away.
func link(path, name string) error {
	elsewhere := path + ".elsewhere"
	return errors.Join(os.Rename(path, elsewhere), os.Symlink(elsewhere, name))
}

func TestOpen_otherOwner(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t testing.TB, path string)
		why   string
	}{
		"no database": {func(t testing.TB, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is damaged; move it away"},
		"another program": {func(t testing.TB, path string) {
			execute(t, path, "PRAGMA application_id = 0; PRAGMA user_version = 0")
		}, "belongs to another program"},
		"a newer version": {func(t testing.TB, path string) {
			execute(t, path, "PRAGMA user_version = 99")
		}, "written by a newer version"},
		"no such kind": {func(t testing.TB, path string) {
			execute(t, path, "INSERT INTO records VALUES (9, x'01', x'', 0, 9000000000000000, 0, x'')")
		}, "malformed bytes"},
		"no such status": {func(t testing.TB, path string) {
			execute(t, path, "INSERT INTO records VALUES (3, x'01', x'', 7, 9000000000000000, 0, x'')")
		}, "read a task: malformed bytes"},
		"no task": {func(t testing.TB, path string) {
			execute(t, path, "INSERT INTO records VALUES (3, x'01', x'', 0, 9000000000000000, 0, x'0102')")
		}, "read a task: malformed bytes"},
		"no key": {func(t testing.TB, path string) {
			execute(t, path, "INSERT INTO records VALUES (0, x'01020304', x'', 0, 9000000000000000, 0, x'00')")
		}, "read a key: malformed bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := opened(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			wantRefused(t, path, c.why)
		})
	}
}

// execute changes a file without the store.
func execute(t testing.TB, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", source(path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}
