package main

import (
	"errors"
	"fmt"
	"io/fs"
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

// Checks each thread of a running server, including those that the Go runtime starts
// before main.
func TestServe_timerSlack(t *testing.T) {
	t.Parallel()
	usual := slackOf(t, os.Getpid())
	if usual != "50000" {
		t.Skipf("SKIPPED: the tests were started with a timer slack of %s ns", usual)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := startDaemonAnew(buildDaemon(t), dir, os.Environ(), []string{"--state", "memory", "--control", "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.kill()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", d.cmd.Process.Pid))
	if err != nil || len(threads) < 3 {
		t.Fatalf("the server has the threads %q: %v", threads, err)
	}
	for _, thread := range threads {
		var id int
		if _, err := fmt.Sscan(filepath.Base(thread), &id); err != nil {
			t.Fatal(err)
		}
		if got := slackOf(t, id); got != "1000000" {
			t.Errorf("a thread has a timer slack of %s ns", got)
		}
	}
}

// slackOf returns the timer slack of a thread in nanoseconds.
func slackOf(t *testing.T, id int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", id))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED: only root sees the slack of other threads, where the kernel tells it: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
