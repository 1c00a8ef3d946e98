// Package osproc has what programs of this server need of the operating system: process
// groups, processor time, and by how much the threads of a process may be late when they
// wait for a time (PR_SET_TIMERSLACK of prctl(2)).
//
// The runtime of Go has a thread that watches the others and sleeps for 20 µs at a time
// while anything runs, and threads that look for work sleep for 3 µs. With the 50 µs that
// Linux gives each thread, these naps take up to a quarter of the time of a process that
// answers many short requests. Nothing that mcpd waits for needs less than 1 ms.
package osproc

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// GroupAttr starts a command in a process group of its own. Signals for the group of this
// process, such as Ctrl-C at a terminal, do not reach that group.
func GroupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills the process group of a process that was started with [GroupAttr].
func KillGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// CPUTime returns the processor time of this process so far, and of the system on its behalf.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Late is by how much the threads may be late.
const TimerSlack = time.Millisecond

// setTimerSlack and getTimerSlack are requests of prctl(2).
const (
	setTimerSlack = 29
	getTimerSlack = 30
)

// usual is the slack that Linux gives whom nobody gave another.
const defaultTimerSlack = 50 * time.Microsecond

// Start starts a program whose threads may all be late by [Late]: they have the slack of the
// thread that started the program.
func Start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer setSlack(getSlack()) // 0 would be that which the thread had before its program began anew
	setSlack(TimerSlack)
	return cmd.Start()
}

// Again executes this program again, as the same process, so that all its threads may be
// late by [Late]: the runtime has begun its own threads before any code of ours runs. args
// and environ are those that the program was started with. mark is the name of a variable
// that Again adds to environ, so that no program executes itself forever where the system
// forgets the slack.
//
// Again returns without an effect if the slack is not the default, as TimerSlackNSec= of
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
	_ = syscall.Exec(programPath(), args, append(slices.Clip(environ), mark)) // where it fails, threads wake more often
}

// program returns a path of the running program: its name, after which the system names the
// process, unless another program has that by now.
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

// set sets the slack of this thread; where the kernel has none, or d is below 0, it does
// nothing.
func setSlack(d time.Duration) {
	if d < 0 {
		return
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, uintptr(d), 0)
}

// get returns the slack of this thread, or less than 0 where the kernel has none.
func getSlack() time.Duration {
	d, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if failed != 0 {
		return -1
	}
	return time.Duration(d)
}
