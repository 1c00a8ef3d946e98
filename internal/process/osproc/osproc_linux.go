package osproc

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// GroupAttr starts a command in a new process group. Signals for the group of
// this process, such as Ctrl-C at a terminal, do not reach it.
func GroupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills the process group of a process started with [GroupAttr].
func KillGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// CPUTime returns the user and system processor time of this process.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TimerSlack is the timer slack of all threads.
const TimerSlack = time.Millisecond

// setTimerSlack and getTimerSlack are operations of prctl(2).
const (
	setTimerSlack = 29
	getTimerSlack = 30
)

// defaultTimerSlack is the default of Linux.
const defaultTimerSlack = 50 * time.Microsecond

// Start starts a program with [TimerSlack] for all its threads, which inherit
// it from the starting thread.
func Start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer setSlack(getSlack()) // 0 would set the slack that the thread had at the start of its program
	setSlack(TimerSlack)
	return cmd.Start()
}

// Reexec executes this program again, in the same process, with [TimerSlack]
// for all its threads: the Go runtime starts its threads before any other code
// runs. args and environ are the arguments and the environment of the program.
// mark is the name of a variable that Reexec adds to environ, so that no
// program executes itself forever on a system that ignores the slack.
//
// Reexec returns without an effect if the slack is not the default, as with
// TimerSlackNSec= of systemd, or if environ has mark. It must be called before
// any file is opened.
// systemd has it, or if environ has mark. It must be called before anything is opened.
func Reexec(args, environ []string, mark string) {
	mark += "=1"
	if getSlack() != defaultTimerSlack || slices.Contains(environ, mark) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer setSlack(defaultTimerSlack)
	setSlack(TimerSlack)
	_ = syscall.Exec(programPath(), args, append(slices.Clip(environ), mark)) // on failure, threads wake more often
}

// programPath returns a path of the running program: its name, which becomes
// the name of the process, unless another program has that path now.
func programPath() string {
	const running = "/proc/self/exe"
	path, err := os.Readlink(running)
	if err != nil {
		return running
	}
	named, err := os.Stat(path)
	if err != nil {
		return running
	}
	if file, err := os.Stat(running); err != nil || !os.SameFile(named, file) {
		return running
	}
	return path
}

// setSlack sets the slack of this thread. It does nothing if the kernel does
// not support it, or if d is negative.
func setSlack(d time.Duration) {
	if d < 0 {
		return
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, uintptr(d), 0)
}

// getSlack returns the slack of this thread; negative if the kernel does not
// support it.
func getSlack() time.Duration {
	d, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if failed != 0 {
		return -1
	}
	return time.Duration(d)
}
