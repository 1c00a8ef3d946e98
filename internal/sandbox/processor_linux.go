package sandbox

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processor has the system end the process once it has spent so many seconds.
func processor(seconds uint64) error {
	if seconds == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("read the processor time of the process: %w", err)
	}
	// The hard limit stays: nobody without special rights could raise it again.
	now.Cur = min(seconds, now.Max)
	if err := errors.Join(undoHandler(unix.SIGXCPU), unix.Setrlimit(unix.RLIMIT_CPU, &now)); err != nil {
		return fmt.Errorf("limit the processor time of the process: %w", err)
	}
	return nil
}

// undoHandler has a signal do what it does without a handler. The runtime of Go has
// one for each, which ignores those that nobody asks for.
func undoHandler(signal unix.Signal) error {
	var action [64]byte // all zero, and larger than that of any architecture
	var errno error
	for _, maskSize := range []uintptr{8, 16} { // there are 64 signals, or 128
		_, _, failed := unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
		if failed == 0 {
			return nil
		}
		errno = failed
	}
	return errno
}

// MayAllow tells whether this system lets a process give others processor time.
const MayAllow = true

// Spent returns how much processor time a process has spent.
func Spent(pid int) (time.Duration, error) {
	const ofProcess = 2 // the clock of the scheduler, of all threads
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &now); err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// Allow lets a process of the same user, which has entered a sandbox with a bound of
// processor time, spend so much of it since it was started.
func Allow(pid int, most time.Duration) error {
	var now unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now)
	if err == nil {
		now.Cur = uint64(most / time.Second) // which fails where it is more than the hard limit
		err = unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
	}
	if err != nil {
		return fmt.Errorf("give a process processor time: %w", err)
	}
	return nil
}
