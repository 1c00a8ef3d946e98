//go:build unix && !linux

package osproc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// GroupAttr starts a command in a process group of its own. Signals for the group of this
// process, such as Ctrl-C at a terminal, do not reach that group.
func GroupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills the process group of a process that was started with [GroupAttr].
func KillGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// CPUTime returns the processor time of this process so far, and of the system on its behalf.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Start starts a program: how late its threads wake is up to the system.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

// Reexec does nothing: how late threads wake is up to the system.
func Reexec(_, _ []string, _ string) {}
