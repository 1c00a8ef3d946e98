package timerslack

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// setTimerSlack and getTimerSlack are requests of prctl(2).
const (
	setTimerSlack = 29
	getTimerSlack = 30
)

// usual is the slack that Linux gives whom nobody gave another.
const usual = 50 * time.Microsecond

// Start starts a program of which all threads may be late: those of a process have the
// slack of the thread that started it.
func Start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer set(get()) // 0 would be that which the thread had before its program began anew
	set(Late)
	return cmd.Start()
}

// Again begins this program anew, as the same process, so that all of its threads may be
// late: the runtime has begun its own before any code of ours. args and environ are what it
// was started with.
//
// It returns without an effect where there is nothing to gain, or where it cannot be had:
// where somebody has chosen another slack, as TimerSlackNSec= of systemd does, and where
// the environment has [Mark]. It must be called before anything is opened.
func Again(args, environ []string) {
	mark := Mark + "=1"
	if get() != usual || slices.Contains(environ, mark) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer set(usual)
	set(Late)
	_ = syscall.Exec(program(), args, append(slices.Clip(environ), mark)) // where it fails, threads wake more often
}

// program returns a path of the running program: its name, after which the system names the
// process, unless another program has that by now.
func program() string {
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
func set(d time.Duration) {
	if d < 0 {
		return
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, uintptr(d), 0)
}

// get returns the slack of this thread, or less than 0 where the kernel has none.
func get() time.Duration {
	d, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if failed != 0 {
		return -1
	}
	return time.Duration(d)
}
