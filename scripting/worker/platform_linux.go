package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// inboundPipe is [os.Pipe]: a write to a worker does not block, or Close ends it.
func inboundPipe() (r, w *os.File, err error) { return os.Pipe() }

// outboundPipe is [os.Pipe], but reads block in the system.
func outboundPipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(ends[0]), "stream"), os.NewFile(uintptr(ends[1]), "stream"), nil
}

// wake writes to the pipe, which the process no longer does.
func (p pipes) wake() {
	raw, err := p.out.SyscallConn()
	if err != nil {
		return
	}
	// An error means that the stream is closed. An [os.File] would wait for space.
	_ = raw.Control(func(fd uintptr) {
		w, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", fd), syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil {
			return // then no other process can have opened it either
		}
		_, _ = syscall.Write(w, make([]byte, 64<<10)) // as much as fits
		_ = syscall.Close(w)
	})
}

// resident returns the resident memory of a process in bytes, besides its executable, which has
// program bytes; 0 if the process has exited.
func resident(pid int, program int64) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	return ownMemory(text, program)
}

// ownMemory parses statm. All processes share the pages of the executable; other pages that could
// be shared count.
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
