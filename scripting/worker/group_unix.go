//go:build unix

package worker

import "syscall"

// apart starts a process in a group of its own, so that signals for the group
// of this process, as of a terminal, do not end it in the midst of a trial.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// lowered is the nice value of a process that gives way: enough for this process and
// quick calls to find a processor at once, and little enough for long ones to go on.
const lowered = 5

// lower has all of a process that was started [apart] give way to others, for good:
// to take that back needs a privilege. Where it cannot, the process competes as before.
func lower(pid int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, pid, lowered) }
