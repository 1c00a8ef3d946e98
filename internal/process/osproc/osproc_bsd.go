//go:build unix && !linux

package osproc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// GroupAttr starts a command in a new process group. Signals for the group of
// this process, such as Ctrl-C at a terminal, do not reach it.
func GroupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills the process group of a process started with [GroupAttr].
func KillGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// CPUTime returns the user and system processor time of this process.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Start starts a program. The system controls the timer slack of its threads.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

// Reexec does nothing: the system controls the timer slack.
func Reexec(_, _ []string, _ string) {}

// Program holds the read-only mappings of the program file in this process.
type Program struct{}

// FindProgram returns a program without mappings: only Linux has an operation to unmap
// pages.
func FindProgram() Program { return Program{} }

// Unmap does nothing.
func (Program) Unmap() {}
