//go:build unix

// Package cputime tells how much processor time the process has used, which a
// budget can be held to on a machine that does other things too.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time of this process so far, that of the system
// on its behalf included.
func Used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
