//go:build unix

package secrets

import (
	"os/exec"
	"syscall"
)

// isolate has the command end with all the processes that it started.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
