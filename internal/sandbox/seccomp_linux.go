//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errThread says that a thread has a filter of its own.
var errThread = errors.New("a thread has another filter")

// seccomp has the kernel refuse all system calls of all threads that what only
// computes does not need.
func seccomp(strict bool) error {
	refused := uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	if strict {
		refused = unix.SECCOMP_RET_KILL_PROCESS
	}
	code := filter(needed(uint32(os.Getpid())), refused)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return errThread
	}
	return nil
}
