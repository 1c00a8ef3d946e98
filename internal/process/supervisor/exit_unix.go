//go:build unix

package supervisor

import (
	"os"
	"syscall"
)

// signalled is added to the number of the signal that has ended a program.
const signalled = 128

func codeOf(state *os.ProcessState) int { return codeOfStatus(state.Sys().(syscall.WaitStatus)) }

func codeOfStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}
