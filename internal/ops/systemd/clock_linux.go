package systemd

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic is CLOCK_MONOTONIC (clock_gettime(2)).
const monotonic = 1

// monotonicNow reads the clock that orders reloads for the service manager (sd_notify(3),
// MONOTONIC_USEC). Package time does not expose it.
func monotonicNow() (time.Duration, error) {
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(now.Nano()), nil
}
