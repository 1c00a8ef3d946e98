//go:build unix

package worker

import "syscall"

// apart starts a process in a group of its own, so that signals for the group
// of this process, as of a terminal, do not end it in the midst of a trial.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
