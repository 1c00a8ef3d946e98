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

// supervising says whether this system lets a process have the descendants of
// its children.
const supervising = true

// answerDescriptor is where a report goes, and inputDescriptor what the program reads.
const (
	reportDescriptor = 3
	inputDescriptor  = 4
)

// Main runs the program that it reads the order for, and reports how it ended
// once all that it has started is dead. It ends all of it when the input ends. It
// is the whole of a process, of which in is the standard input; the standard
// outputs are those of the program.
func Main(in io.Reader) error {
	// What is given up here is given up by this thread, which starts the program.
	runtime.LockOSThread()
	syscall.CloseOnExec(reportDescriptor)
	syscall.CloseOnExec(inputDescriptor)
	answers := os.NewFile(reportDescriptor, "answers")
	r, err := supervise(in)
	if err != nil {
		r = report{Error: err.Error()}
	}
	return json.NewEncoder(answers).Encode(r)
}

func supervise(in io.Reader) (report, error) {
	if err := sandbox.PrepareSupervisor(); err != nil {
		return report{}, fmt.Errorf("confine programs: %w", err)
	}
	orders := json.NewDecoder(in)
	var o order
	if err := orders.Decode(&o); err != nil {
		return report{}, fmt.Errorf("read what to run: %w", err)
	}
	pid, err := syscall.ForkExec(o.Path, textsOf(o.Argv), &syscall.ProcAttr{
		Dir: o.Dir, Env: textsOf(o.Env), Files: []uintptr{inputDescriptor, 1, 2}, Sys: osproc.GroupAttr(),
	})
	if err = errors.Join(err, syscall.Close(inputDescriptor)); err != nil {
		return report{}, fmt.Errorf("start the program: %w", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, in)
	}()
	f := processTree{program: pid, exits: make(chan struct{}), reaped: make(chan struct{})}
	go f.watchExits()
	f.await(gone)
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

// family is the program, with all that it has started. One goroutine uses it: a
// process is signalled only while nobody else can have taken its number.
type processTree struct {
	program int
	// deaths tells that somebody has died, and taken that they are taken up.
	exits, reaped chan struct{}
	// ended says that the program has, and status how.
	ended  bool
	status syscall.WaitStatus
}

// watch tells of deaths until nobody is left. It takes nobody up.
func (f *processTree) watchExits() {
	for {
		var info [128]byte // a siginfo_t
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, 0, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			f.exits <- struct{}{}
			<-f.reaped
		case syscall.EINTR:
		default:
			return
		}
	}
}

// await waits for the program to end, and ends it once gone is closed.
func (f *processTree) await(gone <-chan struct{}) {
	for !f.ended {
		select {
		case <-f.exits:
			f.reap()
			f.reaped <- struct{}{}
		case <-gone:
			gone = nil
			_ = syscall.Kill(f.program, syscall.SIGKILL)
		}
	}
}

// reap takes up those who have died, and reports whether there are others.
func (f *processTree) reap() (others bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == f.program:
			f.ended, f.status = true, status
		}
	}
}

// again is when processes are looked for again that have begun meanwhile.
const rescanInterval = 5 * time.Millisecond

// end kills until nobody is left. Who has hidden in another group or session is a
// child of this process as soon as its parents are dead.
func (f *processTree) killAll() {
	for f.reap() {
		for _, pid := range descendants() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-f.exits:
			f.reap()
			f.reaped <- struct{}{}
		case <-time.After(rescanInterval):
		}
	}
}

// descendants returns the processes that this one, or one of them, has started.
func descendants() []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // what cannot be read is tried again
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

// parentOf returns the process that is the parent of another. It stands behind
// the name, which may hold anything, and the state.
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
