package loader

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestOverlay_replacesAndAddsFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.hcl": "disk", "sub/b.hcl": "disk"} {
		writeOverlaid(t, filepath.Join(dir, name), text)
	}
	var o Overlay
	o.Set(filepath.Join(dir, "a.hcl"), []byte("open"))
	o.Set(filepath.Join(dir, "sub", "new.hcl"), []byte("new"))
	o.Set(filepath.Join(dir, "gone", "x.hcl"), []byte("no directory"))
	o.Set(filepath.Join(dir, "sub"), []byte("a directory"))
	o.Set(dir, []byte("a directory"))
	fsys := o.Dir(dir)
	if err := fstest.TestFS(fsys, "a.hcl", "sub/b.hcl", "sub/new.hcl"); err != nil {
		t.Error(err)
	}
	read := func() map[string]string {
		texts := map[string]string{}
		err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(fsys, name)
			texts[name] = string(text)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return texts
	}
	if diff := cmp.Diff(map[string]string{"a.hcl": "open", "sub/b.hcl": "disk", "sub/new.hcl": "new"}, read()); diff != "" {
		t.Error(diff)
	}
	info, err := fs.Stat(fsys, "a.hcl")
	if err != nil || info.Size() != 4 {
		t.Errorf("a.hcl has size %d: %v", info.Size(), err)
	}
	o.Remove(filepath.Join(dir, "a.hcl"))
	o.Remove(filepath.Join(dir, "sub", "new.hcl"))
	if diff := cmp.Diff(map[string]string{"a.hcl": "disk", "sub/b.hcl": "disk"}, read()); diff != "" {
		t.Error(diff)
	}
	if got, want := Path(fsys), dir; got != want {
		t.Errorf("Path is %q, want %q", got, want)
	}
}

// A text does not hide that a file is not one that mcpd reads.
func TestOverlay_keepsModeOfFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "a.hcl")
	writeOverlaid(t, name, "disk")
	if err := os.Chmod(name, 0o666); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	writeOverlaid(t, outside, "secret")
	if err := os.Symlink(outside, filepath.Join(dir, "link.hcl")); err != nil {
		t.Fatal(err)
	}
	var o Overlay
	o.Set(name, []byte("open"))
	o.Set(filepath.Join(dir, "link.hcl"), []byte("open"))
	fsys := o.Dir(dir)
	if info, err := fs.Stat(fsys, "a.hcl"); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if text, err := fs.ReadFile(fsys, "link.hcl"); err == nil {
		t.Errorf("a link out of the directory is readable: %q", text)
	}
	if _, err := fs.ReadFile(fsys, "none.hcl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func writeOverlaid(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

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
	if err := exec.Command("mkfifo", path).Run(); err != nil {
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
