package worker

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// slack is by how much a process may be late when it waits for a time. The runtime of Go
// has a thread that watches the others and waits for 20 µs at a time while anything runs:
// with the 50 µs that Linux gives everybody that thread takes a quarter of what a process
// uses that runs short bodies. Nothing that a body waits for is told in less than 1 ms.
const slack = time.Millisecond

// setTimerSlack is PR_SET_TIMERSLACK of prctl(2).
const setTimerSlack = 29

// begin starts a program of which all threads have the slack: those of a process have that
// of the thread which started it.
func begin(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setSlack(slack)
	defer setSlack(0) // that which the thread had
	return cmd.Start()
}

// setSlack sets that of this thread; where the kernel has none, threads wake more often.
func setSlack(d time.Duration) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, uintptr(d), 0)
}
