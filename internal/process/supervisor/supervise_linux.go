package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/internal/process/sandbox"
)

// supervising reports whether a process on this system can adopt the
// descendants of its children.
const supervising = true

// reportDescriptor receives the report, and inputDescriptor is the program's
// input.
const (
	reportDescriptor = 3
	inputDescriptor  = 4
)

// Main runs the program of the order that it reads from in, and reports how it
// ended after all its processes are dead. It kills them when in ends. Main is
// the whole process: in is its standard input, and the standard outputs belong
// to the program.
func Main(in io.Reader) error {
	// Rights are dropped for this thread, which starts the program.
	runtime.LockOSThread()
	syscall.CloseOnExec(reportDescriptor)
	syscall.CloseOnExec(inputDescriptor)
	reports := os.NewFile(reportDescriptor, "report")
	r, err := supervise(in)
	if err != nil {
		r = report{Error: err.Error()}
	}
	return json.NewEncoder(reports).Encode(r)
}

func supervise(in io.Reader) (report, error) {
	if err := sandbox.PrepareSupervisor(); err != nil {
		return report{}, fmt.Errorf("confine programs: %w", err)
	}
	decoder := json.NewDecoder(in)
	var o order
	if err := decoder.Decode(&o); err != nil {
		return report{}, fmt.Errorf("read order: %w", err)
	}
	pid, err := syscall.ForkExec(o.Path, textsOf(o.Argv), &syscall.ProcAttr{
		Dir: o.Dir, Env: textsOf(o.Env), Files: []uintptr{inputDescriptor, 1, 2}, Sys: osproc.GroupAttr(),
	})
	if err = errors.Join(err, syscall.Close(inputDescriptor)); err != nil {
		return report{}, fmt.Errorf("start the program: %w", err)
	}
	inputEnded := make(chan struct{})
	go func() {
		defer close(inputEnded)
		_, _ = io.Copy(io.Discard, in)
	}()
	f := processTree{program: pid, exits: make(chan struct{}), reaped: make(chan struct{})}
	go f.watchExits()
	f.await(inputEnded)
	f.killAll()
	return report{Code: codeOfStatus(f.status)}, nil
}

func textsOf(all [][]byte) []string {
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = string(b)
	}
	return texts
}

// processTree is the program with all processes that it started. Only one
// goroutine uses it: a process is signaled only while its id cannot be reused.
type processTree struct {
	program int
	// exits reports that a process has exited, and reaped that it was reaped.
	exits, reaped chan struct{}
	// ended is true when the program has ended, with status.
	ended  bool
	status syscall.WaitStatus
}

// watchExits reports exits until no process is left. It does not reap.
func (t *processTree) watchExits() {
	for {
		var info [128]byte // a siginfo_t
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, 0, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			t.exits <- struct{}{}
			<-t.reaped
		case syscall.EINTR:
		default:
			return
		}
	}
}

// await waits for the program to end, and kills it when inputEnded is closed.
func (t *processTree) await(inputEnded <-chan struct{}) {
	for !t.ended {
		select {
		case <-t.exits:
			t.reap()
			t.reaped <- struct{}{}
		case <-inputEnded:
			inputEnded = nil
			_ = syscall.Kill(t.program, syscall.SIGKILL)
		}
	}
}

// reap reaps exited processes, and reports whether others are left.
func (t *processTree) reap() (others bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == t.program:
			t.ended, t.status = true, status
		}
	}
}

// rescanInterval is the interval for finding newly started processes.
const rescanInterval = 5 * time.Millisecond

// killAll kills processes until none is left. A process in another group or
// session becomes a child of this process when its parents are dead.
func (t *processTree) killAll() {
	for t.reap() {
		for _, pid := range descendants() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-t.exits:
			t.reap()
			t.reaped <- struct{}{}
		case <-time.After(rescanInterval):
		}
	}
}

// descendants returns all descendants of this process.
func descendants() []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // unreadable entries are tried again
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	found := children[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parentOf returns the parent of a process. In the file, the parent follows the
// state and the name, which may contain any character.
func parentOf(pid int) (parent int, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
