package apikey

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAdd_keepsOwner: a key that root adds must not lock the server out of its
// file, nor its user out of the next edit.
func TestAdd_keepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can change owners")
	}
	const uid, gid = 4711, 4712
	folder := t.TempDir()
	path := filepath.Join(folder, "keys.json")
	if err := os.Chown(folder, uid, gid); err != nil {
		t.Fatal(err)
	}
	belongs := func(when string) {
		for _, name := range []string{path, path + ".lock"} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if stat := info.Sys().(*syscall.Stat_t); stat.Uid != uid || stat.Gid != gid || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s is of %d:%d, %v", when, name, stat.Uid, stat.Gid, info.Mode())
			}
		}
	}
	add(t, path, known())
	belongs("new")
	for _, name := range []string{folder, path} {
		if err := os.Chown(name, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(path+".lock", uid, gid); err != nil {
		t.Fatal(err)
	}
	add(t, path, known())
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the owner of root's file changed: %v, %v", info, err)
	}
}
