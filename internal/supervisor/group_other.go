//go:build !unix

package supervisor

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

// killGroup ends the process alone: there are no groups.
func killGroup(p *os.Process) error { return p.Kill() }

func codeOf(state *os.ProcessState) int { return state.ExitCode() }
