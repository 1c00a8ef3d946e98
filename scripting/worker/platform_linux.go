package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// inward is [os.Pipe]: a write to a worker does not wait, or Close ends it.
func inboundPipe() (r, w *os.File, err error) { return os.Pipe() }

// outward is [os.Pipe], but that who reads waits in the system.
func outboundPipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(ends[0]), "stream"), os.NewFile(uintptr(ends[1]), "stream"), nil
}

// wake sends what no process does.
func (p pipes) wake() {
	raw, err := p.out.SyscallConn()
	if err != nil {
		return
	}
	// It fails when the stream is closed. An [os.File] would wait for room.
	_ = raw.Control(func(fd uintptr) {
		w, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", fd), syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil {
			return // nobody else can have opened it either
		}
		_, _ = syscall.Write(w, make([]byte, 64<<10)) // as much as there is room for
		_ = syscall.Close(w)
	})
}

// resident returns how many bytes of memory a process has beside the program that it
// runs, which has so many; 0 when it has ended.
func resident(pid int, program int64) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	return ownMemory(text, program)
}

// ownMemory returns what statm says. The pages of a program are there once for all its
// processes; what else a process could share with others counts.
func ownMemory(statm []byte, program int64) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	all, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	size := int64(os.Getpagesize())
	return all*size - min(shared*size, program)
}
