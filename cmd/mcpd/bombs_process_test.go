package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mostWorkers is how many processes may run bodies at once.
const mostWorkers = 8

// stat returns the fields of a process behind its name: its state, its parent.
func stat(id int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])), nil
}

// processes returns the ids of the processes that the server has started, and
// that have not been buried.
func (b *bombs) processes(t *testing.T) (ids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(all) == 0 {
		t.Skip("SKIPPED: this system does not tell which processes there are")
	}
	for _, dir := range all {
		id, _ := strconv.Atoi(filepath.Base(dir))
		if fields, err := stat(id); err == nil && fields[1] == strconv.Itoa(b.cmd.Process.Pid) {
			ids = append(ids, id)
		}
	}
	return ids
}

// few returns the processes that the server has once those have ended that it has
// killed: calls do not wait for that.
func (b *bombs) few(t *testing.T) (ids []int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if ids = b.processes(t); len(ids) <= mostWorkers || time.Now().After(end) {
			break
		}
	}
	if len(ids) > mostWorkers {
		t.Errorf("%d processes are left", len(ids))
	}
	return ids
}

// memory returns how much memory the server has, and the most it ever had, in bytes.
func (b *bombs) memory(t *testing.T) (now, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int{}
	for _, match := range regexp.MustCompile(`(VmRSS|VmHWM):\s+(\d+) kB`).FindAllSubmatch(text, 2) {
		kilobytes, _ := strconv.Atoi(string(match[2]))
		bytes[string(match[1])] = kilobytes << 10
	}
	if len(bytes) != 2 {
		t.Fatalf("no resident memory in %s", text)
	}
	return bytes["VmRSS"], bytes["VmHWM"]
}

// settled returns how much memory the server has once it is no more than it ought
// to be, or does not get less: the runtime collects what it must in two minutes at
// the latest, and then gives it back.
func (b *bombs) settled(t *testing.T, most int) (now int) {
	t.Helper()
	for range 240 {
		if now, _ = b.memory(t); now <= most {
			break
		}
		b.add(t, 1, 1) // a server that does nothing at all need not tidy up
		time.Sleep(time.Second)
	}
	return now
}
