package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// words returns the words of a file in /proc, separated by one space.
func words(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestConfinement_kernelStatus reads the status of a process that runs calls.
func TestConfinement_kernelStatus(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, silent)
	if err != nil || out.Result == nil {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	pid := e.processes[0].cmd.Process.Pid
	status, limits := words(t, fmt.Sprint(pid, "/status")), words(t, fmt.Sprint(pid, "/limits"))
	if !offersSeccomp(t) {
		t.Log("NOT TESTED on this machine: seccomp, which it does not offer")
	} else if !strings.Contains(status, "Seccomp: 2") || !strings.Contains(status, "NoNewPrivs: 1") {
		t.Errorf("its status is %s", status)
	}
	for _, limit := range []string{"core file size 0 0 bytes", "file size 0 0 bytes", "open files 0 0 files", "data size 2147483648 2147483648 bytes"} {
		if !strings.Contains(limits, "Max "+limit) {
			t.Errorf("there is no limit %q: %s", limit, limits)
		}
	}
}

// TestCPULimit_extended: the limit is raised only when needed; without its parent the process ends.
func TestCPULimit_extended(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	e.cpuAllowance = 100 * time.Second
	if out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, silent); err != nil || out.Result == nil {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	p := e.processes[0]
	if used, err := sandbox.CPUTime(p.cmd.Process.Pid); err != nil || used <= 0 {
		t.Errorf("the process has spent %v: %v", used, err)
	}
	for _, step := range []struct {
		spends time.Duration
		want   int
	}{{0, 100}, {49 * time.Second, 100}, {50 * time.Second, 150}, {99 * time.Second, 150}, {10 * time.Hour, 36100}} {
		e.mu.Lock()
		e.cpuSpent = func(int) (time.Duration, error) { return step.spends, nil }
		e.mu.Unlock()
		e.tick()
		limits := words(t, fmt.Sprint(p.cmd.Process.Pid, "/limits"))
		if !strings.Contains(limits, fmt.Sprintf("Max cpu time %d ", step.want)) || p.draining {
			t.Errorf("after %v, with %d seconds wanted, it has %s", step.spends, step.want, limits)
		}
	}
}

// TestCPULimit_notExtendable: the process is replaced once its calls have ended.
func TestCPULimit_notExtendable(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	first := acquireOne(t, e, false)
	e.mu.Lock()
	e.cpuSpent = func(int) (time.Duration, error) { return 0, errors.New("not here") }
	e.mu.Unlock()
	e.tick()
	other, err := e.choose(requirements{memory: e.options.Memory})
	if err != nil || other == nil || other == first {
		t.Fatalf("the next call is in the same process: %v", err)
	}
	release(e, other, requirements{}, unrated)
}

// TestResident_withoutExecutable: the system counts the executable among the shared pages.
func TestResident_withoutExecutable(t *testing.T) {
	page := int64(os.Getpagesize())
	for statm, want := range map[string]int64{
		"900 50 20 7 0 60 0": 30, "900 50 25 7 0 60 0": 25, "900 50 45 7 0 60 0": 25, "900 50 0 7 0 60 0": 50,
		"": 0, "900 50": 0, "900 x 20": 0, "900 50 x": 0,
	} {
		if got := ownMemory([]byte(statm), 25*page); got != want*page {
			t.Errorf("%q: %d pages and %d bytes, want %d", statm, got/page, got%page, want)
		}
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(path); err != nil || sizeOf(path) != int64(len(file)) || sizeOf(path+".none") != 0 {
		t.Errorf("the executable has %d bytes, got %d: %v", len(file), sizeOf(path), err)
	}
}

// slackOf returns the timer slack of a thread in nanoseconds.
func slackOf(t *testing.T, id int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", id))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED: only root can read the slack of other threads: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestProcess_wakeups: a worker process has a large timer slack; the threads of this process keep
// theirs.
func TestProcess_wakeups(t *testing.T) {
	usual := slackOf(t, os.Getpid())
	e := executor(t, Options{Processes: 1})
	p := acquireOne(t, e, true)
	awaitSpare(t, e, p) // until then a thread of this process has the slack, to start the spare
	for _, id := range threadsOf(t, p.cmd.Process.Pid) {
		if got := slackOf(t, id); got != int64(osproc.TimerSlack) {
			t.Errorf("a thread of the process may be late by %d ns, want %d", got, osproc.TimerSlack)
		}
	}
	for _, id := range threadsOf(t, os.Getpid()) {
		if got := slackOf(t, id); got != usual {
			t.Errorf("a thread of this process may be late by %d ns, want %d", got, usual)
		}
	}
}

// threadsOf returns the threads of a process.
func threadsOf(t *testing.T, pid int) (ids []int) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || len(entries) == 0 {
		t.Fatalf("the process has no threads: %v", err)
	}
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestStream_wake, regardless of unread data.
func TestStream_wake(t *testing.T) {
	for _, full := range []int{0, 1, 4096, 64 << 10} {
		ours, theirs, err := connect(&exec.Cmd{})
		if err != nil {
			t.Fatal(err)
		}
		stdout := theirs[1].(interface{ Write([]byte) (int, error) })
		if _, err := stdout.Write(make([]byte, full)); err != nil {
			t.Fatal(err)
		}
		ours.wake() // must not block
		if n, err := ours.Read(make([]byte, 128<<10)); n == 0 || err != nil {
			t.Errorf("after %d bytes it reads %d bytes, %v", full, n, err)
		}
		_ = ours.Close()
		for _, end := range theirs {
			_ = end.Close()
		}
	}
}

func init() {
	programs["leads"] = func() error {
		if syscall.Getpgrp() != os.Getpid() {
			return errFrame
		}
		return writeFrame(os.Stdout, frameTrialDone, nil)
	}
}

// A signal to the group of the daemon, such as Ctrl-C, must not reach worker processes.
func TestProcess_ownGroup(t *testing.T) {
	if err := pool(t, "leads").Try(source("return 1")); err != nil {
		t.Error(err)
	}
}
