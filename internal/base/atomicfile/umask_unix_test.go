//go:build unix

package atomicfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// Write ignores the umask. Replace follows it for a new file, and keeps the mode of an existing one.
func TestReplace_umask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, row := range []struct {
		name            string
		umask           int
		existing        fs.FileMode
		replaced, wrote fs.FileMode
	}{
		{"usual umask", 0o022, 0, 0o644, 0o600},
		{"no umask", 0, 0, 0o644, 0o600},
		{"private umask", 0o077, 0, 0o600, 0o600},
		{"group umask", 0o027, 0, 0o640, 0o600},
		{"existing file", 0o022, 0o600, 0o600, 0o600},
		{"existing shared file", 0o077, 0o664, 0o664, 0o600},
	} {
		syscall.Umask(0)
		folder := t.TempDir()
		replaced, wrote := filepath.Join(folder, "replaced"), filepath.Join(folder, "wrote")
		if row.existing != 0 {
			for _, path := range []string{replaced, wrote} {
				if err := os.WriteFile(path, []byte("old"), row.existing); err != nil {
					t.Fatal(err)
				}
			}
		}
		syscall.Umask(row.umask)
		if err := atomicfile.Replace(replaced, []byte("new")); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.Write(wrote, []byte("new"), 0o600, nil); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{replaced: row.replaced, wrote: row.wrote} {
			text, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if err != nil || statErr != nil || string(text) != "new" || info.Mode() != want {
				t.Errorf("%s: %s contains %q, %v, and has mode %v, want %v", row.name, filepath.Base(path), text, err, info.Mode(), want)
			}
		}
	}
}

// A link without a target is replaced by a file with the mode of a new one.
func TestReplace_brokenLink(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.Symlink("missing", path); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	check(t, path, "new")
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
