//go:build !unix

package osproc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// GroupAttr returns nil: the system has no process groups.
func GroupAttr() *syscall.SysProcAttr { return nil }

// KillGroup kills only the process.
func KillGroup(p *os.Process) error { return p.Kill() }

var began = time.Now()

// CPUTime returns the age of the process, an approximation while it works.
func CPUTime() time.Duration { return time.Since(began) }

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
