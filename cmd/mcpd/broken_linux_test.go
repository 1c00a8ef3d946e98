package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mcpd starts as a user without permission to read the tools.
func TestServe_unreadableDirectory(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Chmod(filepath.Join(s.dir, "tools.d"), 0)); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	// The program is opened by this process: other users cannot read its directory.
	cmd := exec.Command("/proc/self/fd/3", "serve")
	cmd.Args[0], cmd.ExtraFiles = "mcpd", []*os.File{program}
	cmd.Dir, cmd.Env = s.dir, s.env("HOME="+s.dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); err == nil || code != 1 || strings.Count(string(out), "mcpd: ") != 1 || !strings.Contains(string(out), "permission denied") {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
}
