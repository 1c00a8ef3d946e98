package systemd

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic is the number of CLOCK_MONOTONIC (clock_gettime(2)).
const monotonic = 1

// elapsed reads the clock by which the manager orders reloads (sd_notify(3),
// MONOTONIC_USEC). Package time has it too, and does not tell it.
func elapsed() (time.Duration, error) {
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(now.Nano()), nil
}
