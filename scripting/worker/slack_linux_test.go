package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/timerslack"
)

// slackOf returns the slack of a thread in nanoseconds.
func slackOf(t *testing.T, id int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", id))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED: only root sees the slack of other threads, where the kernel tells it: %v", err)
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

// TestProcessesOfBodiesWakeSeldom starts one, and leaves the threads of this process as they were.
func TestProcessesOfBodiesWakeSeldom(t *testing.T) {
	usual := slackOf(t, os.Getpid())
	e := executor(t, Options{Processes: 1})
	p := taken(t, e, true)
	awaitSpare(t, e, p) // until then a thread of this process has the slack, to start it
	for _, id := range threadsOf(t, p.cmd.Process.Pid) {
		if got := slackOf(t, id); got != int64(timerslack.Late) {
			t.Errorf("a thread of the process may be late by %d ns, want %d", got, timerslack.Late)
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
