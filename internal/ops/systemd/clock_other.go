//go:build !linux

package systemd

import "time"

// monotonicNow returns 0: systemd exists only on Linux.
func monotonicNow() (time.Duration, error) { return 0, nil }
