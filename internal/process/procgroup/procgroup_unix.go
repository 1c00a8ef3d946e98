//go:build unix

// Package procgroup starts processes in groups of their own, and kills whole groups.
package procgroup

import (
	"os"
	"syscall"
)

// Attr has a command start in a process group of its own. Signals for the group of this
// process, such as Ctrl-C at a terminal, do not reach that group.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the process group that a process was started in by [Attr].
func Kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
