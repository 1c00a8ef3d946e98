package apikey

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestLoad_rootFileOfGroup: Kubernetes mounts a Secret as files of root with the group
// of the pod.
func TestLoad_rootFileOfGroup(t *testing.T) {
	if path := os.Getenv("MCPD_TEST_KEYS"); path != "" { // the process of another user
		_, err := Load(path)
		fmt.Println("loaded:", err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can change owners")
	}
	const uid, gid = 4711, 4712
	folder, err := os.MkdirTemp("", "keys")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "keys.json")
	add(t, path, known())
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner, group int
		mode         os.FileMode
		want         string
	}{
		{0, gid, 0o440, "loaded: <nil>"},
		{0, gid, 0o640, "loaded: <nil>"},
		{0, gid, 0o660, "open to other users"},
		{0, gid, 0o444, "open to other users"},
		{0, 4713, 0o440, "permission denied"},
		{uid, gid, 0o440, "open to other users"},
		{uid, gid, 0o400, "loaded: <nil>"},
	} {
		if err := os.Chown(path, c.owner, c.group); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		// The program is opened by this process: other users cannot read its directory.
		program, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		other := exec.Command("/proc/self/fd/3", "-test.run=^TestLoad_rootFileOfGroup$", "-test.count=1")
		other.ExtraFiles, other.Dir, other.Env = []*os.File{program}, "/", []string{"MCPD_TEST_KEYS=" + path}
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		out, err := other.CombinedOutput()
		program.Close()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%d:%d %v: %v, want %q\n%s", c.owner, c.group, c.mode, err, c.want, out)
		}
	}
}
