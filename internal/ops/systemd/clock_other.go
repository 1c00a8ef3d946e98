//go:build !linux

package systemd

import "time"

// monotonicNow returns 0: systemd exists only on Linux.
func elapsed() (time.Duration, error) { return 0, nil }
