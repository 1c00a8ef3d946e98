// Package sandbox takes from the process that it is called in whatever the
// process does not need to compute: files, the network, other processes, and
// more memory than it is given. What remains are the descriptors that it was
// started with, memory, threads and clocks.
//
// [Enter] does so with what the system offers, and says in a [Report] what is
// on and what is missing. It cannot be undone. It does not decide whether what
// is missing matters.
package sandbox

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// Options say how a process is confined.
type Options struct {
	// Memory is how many bytes of data the process may have; 0 bounds nothing.
	Memory uint64
	// Processor is after how many seconds of processor time the system ends the
	// process, unless another raises its soft limit; 0 bounds nothing. Linux alone
	// has it: nowhere else can another raise it.
	CPUSeconds uint64
	// Strict ends the process at a system call that is refused, which otherwise
	// fails: for tests, which show by it that nothing is refused that is needed.
	Strict bool
}

// MayAllow reports whether this system has [Spent] and [Allow].
const SupportsCPULimit = runtime.GOOS == "linux"

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

// Facility is one means to confine a process.
type Facility struct {
	// Name is as its documentation has it, as in seccomp.
	Name string `json:"name"`
	// On tells whether it confines the process.
	On bool `json:"on"`
	// Detail is the version of one that is on, and of others why they are not.
	Detail string `json:"detail,omitempty"`
}

// Report lists what confines a process, and what does not.
type Report []Facility

func missing(name, why string) Facility { return Facility{Name: name, Detail: why} }

// with returns a facility that is on unless err says why it is not.
func facility(name string, err error) Facility {
	if err != nil {
		return missing(name, reason(err))
	}
	return Facility{Name: name, On: true}
}

// reason tells in words what an error of the system means for a facility.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		return "the kernel has none"
	case errors.Is(err, syscall.EOPNOTSUPP):
		return "it is off in this kernel"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "it is not permitted here"
	}
	return err.Error()
}
