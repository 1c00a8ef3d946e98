package worker

import "syscall"

// lowered is by how much nicer than this process one is that gives way: enough for this
// process and quick calls to find a processor at once, and little enough for long ones to
// go on.
const lowered = 5

// lower has all threads of a process that was started [apart] give way to others, for
// good: to take that back needs a privilege. Where it cannot, the process competes as before.
func lower(pid int) {
	// The kernel counts down from 20 here, and up from -20 there: setpriority(2).
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return
	}
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, min(20-own+lowered, 19))
}
