//go:build unix

package loader

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// replacing is a directory in which something replaces a file by a pipe after its mode was read.
type replacing struct {
	dir
	t *testing.T
}

func (r replacing) Stat(name string) (fs.FileInfo, error) {
	info, err := r.dir.Stat(name)
	path := filepath.Join(string(r.dir), name)
	if err := os.Remove(path); err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.t.Skip(err)
	}
	return info, err
}

// TestContent_replacedByPipe would wait for a writer forever if the pipe was opened in blocking mode.
func TestContent_replacedByPipe(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.hcl"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := content(replacing{dir(folder), t}, "a.hcl", 10); !errors.Is(err, errNotRegular) {
		t.Errorf("a pipe is read: %v", err)
	}
}
