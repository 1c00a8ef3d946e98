//go:build !unix

// Package procgroup starts processes in groups of their own, and kills whole groups.
package procgroup

import (
	"os"
	"syscall"
)

// Attr changes nothing: the system has no process groups.
func Attr() *syscall.SysProcAttr { return nil }

// Kill kills the process alone.
func Kill(p *os.Process) error { return p.Kill() }
