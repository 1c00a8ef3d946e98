// Package sandbox removes the rights of the calling process that it does not
// need for computing: files, the network, other processes, and more memory than
// its limit. The process keeps its open descriptors, memory, threads and
// clocks.
//
// [Enter] applies the facilities of the system, and returns a [Report] of
// enabled and missing ones. It cannot be undone. The caller decides whether a
// missing facility matters.
package sandbox

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// Options configure the confinement of a process.
type Options struct {
	// Memory is the maximum data size in bytes; 0 means no limit.
	Memory uint64
	// CPUSeconds is the processor time in seconds after which the system ends the
	// process, unless another process raises its soft limit; 0 means no limit. It
	// is supported only on Linux: elsewhere no other process could raise it.
	CPUSeconds uint64
	// Strict ends the process at a denied system call, which otherwise fails.
	// Tests use it to show that no needed call is denied.
	Strict bool
}

// SupportsCPULimit reports whether this system has [CPUTime] and [SetCPULimit].
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

// Enter confines this process permanently. The main goroutine should call it
// early: it closes inherited descriptors other than the standard streams, and
// no file can be opened afterwards. The report has the facilities that the
// system lacks. An error means that limits exist but could not be set: the
// process should end.
func Enter(o Options) (Report, error) {
	// A setting of one thread must be extended to all threads from the same
	// thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Files that the first timer and the first local time open could not be
	// opened later.
	time.NewTimer(time.Hour).Stop()
	_, _ = time.Now().Zone()
	return enter(o)
}

// Facility is one facility to confine a process.
type Facility struct {
	// Name is the documented name, such as seccomp.
	Name string `json:"name"`
	// On is true if it confines the process.
	On bool `json:"on"`
	// Detail is the version of an enabled facility, or why it is missing.
	Detail string `json:"detail,omitempty"`
}

// Report lists enabled and missing facilities.
type Report []Facility

func missing(name, why string) Facility { return Facility{Name: name, Detail: why} }

// facility returns a facility that is enabled if err is nil.
func facility(name string, err error) Facility {
	if err != nil {
		return missing(name, reason(err))
	}
	return Facility{Name: name, On: true}
}

// reason describes a system error of a facility.
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
