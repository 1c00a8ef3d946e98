package sandbox

import (
	"runtime"
	"time"
)

// Options say how a process is confined.
type Options struct {
	// Memory is how many bytes of data the process may have; 0 bounds nothing.
	Memory uint64
	// Processor is after how many seconds of processor time the system ends the
	// process, unless another raises its soft limit; 0 bounds nothing. Linux alone
	// has it: nowhere else can another raise it.
	Processor uint64
	// Strict ends the process at a system call that is refused, which otherwise
	// fails: for tests, which show by it that nothing is refused that is needed.
	Strict bool
}

// The names of facilities, in the order of a report.
const (
	nameRlimits     = "rlimits"
	nameMemory      = "a bound of memory"
	nameDescriptors = "descriptors"
	nameNoNewPrivs  = "no_new_privs"
	nameUndumpable  = "undumpable"
	nameSeccomp     = "seccomp"
	nameLandlock    = "landlock"
)

// Enter confines this process for good. It is meant to be called early, by the
// main goroutine: descriptors that the process had inherited are closed, other
// than its standard streams, and no file can be opened afterwards. What the
// system lacks is told by the report. The error says that the process could not
// be bounded on a system that has bounds: it should end.
func Enter(o Options) (Report, error) {
	// What is set for one thread first must be set for all from that one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// What is opened with the first timer, and the first local time, could not be
	// opened any more.
	time.NewTimer(time.Hour).Stop()
	_, _ = time.Now().Zone()
	return enter(o)
}
