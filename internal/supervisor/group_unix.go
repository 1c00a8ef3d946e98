//go:build unix

package supervisor

import (
	"os"
	"syscall"
)

// signalled is added to the number of the signal that has ended a program.
const signalled = 128

// apart starts a process in a group of its own, which signals for the group of
// this process, as of a terminal, do not reach.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a process and all that are in its group.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

func codeOf(state *os.ProcessState) int { return codeOfStatus(state.Sys().(syscall.WaitStatus)) }

func codeOfStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}
