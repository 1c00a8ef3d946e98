//go:build !unix

package osproc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// GroupAttr changes nothing: the system has no process groups.
func GroupAttr() *syscall.SysProcAttr { return nil }

// KillGroup kills the process alone.
func KillGroup(p *os.Process) error { return p.Kill() }

var began = time.Now()

// CPUTime returns the age of the process, which is near its processor time while it works.
func CPUTime() time.Duration { return time.Since(began) }

// Start starts a program: how late its threads wake is up to the system.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

// Reexec does nothing: how late threads wake is up to the system.
func Reexec(_, _ []string, _ string) {}
