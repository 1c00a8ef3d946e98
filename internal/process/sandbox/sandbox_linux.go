package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enter drops rights, and then the means to regain them.
func enter(o Options) (Report, error) {
	open := facility(nameDescriptors, closeInherited())
	privs := facility(nameNoNewPrivs, noNewPrivs())
	dump := facility(nameUndumpable, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	land := landlock()
	if err := errors.Join(setRlimits(o.Memory), limitCPU(o.CPUSeconds)); err != nil {
		return nil, err
	}
	calls := facility(nameSeccomp, seccomp(o.Strict))
	if calls.On {
		// Threads without it inherit it from the thread that set the filter.
		privs = facility(nameNoNewPrivs, nil)
	}
	return Report{facility(nameRlimits, nil), open, privs, dump, calls, land}, nil
}

// errCgo reports that not all threads of the process are known.
var errCgo = errors.New("the program is built with cgo; build it with CGO_ENABLED=0")

// onAllThreads makes a system call on all threads, or on none.
func onAllThreads(trap, a1, a2, a3 uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, a3, 0, 0, 0)
	switch {
	case errno == 0:
		return nil
	case errno == unix.ENOTSUP:
		return errCgo
	}
	return errno
}

// noNewPrivs prevents all threads from gaining rights by execve, or only this
// thread if the others are not known.
func noNewPrivs() error {
	err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	if errors.Is(err, errCgo) {
		err = errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), err)
	}
	return err
}

// The versions of Landlock that introduced each right.
const (
	landlockFiles = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // all rights up to it

	landlockRefer    = 2
	landlockTruncate = 3
	landlockNetwork  = 4
	landlockDevices  = 5
	landlockScopes   = 6
	landlockThreads  = 8 // restricts all threads
	landlockSockets  = 9
)

// erratumSignals is the bit of a fix: with it, threads that were restricted
// separately may signal each other, as the Go scheduler does.
const erratumSignals = 1 << 1

// landlock denies every supported right, without exception, in all threads.
func landlock() Facility {
	version, err := landlockQuery(unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != nil {
		return facility(nameLandlock, err)
	}
	errata, err := landlockQuery(unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if err != nil {
		errata = 0 // the kernel is older than the errata query
	}
	rules, size := landlockRules(version, errata)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return facility(nameLandlock, errno)
	}
	err = errors.Join(landlockRestrict(fd, version), unix.Close(int(fd)))
	f := facility(nameLandlock, err)
	if f.On {
		f.Detail = strconv.Itoa(version)
	}
	return f
}

func landlockQuery(flags uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, flags)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// landlockRules returns the rights that a version can deny, and the size of the
// attributes that it supports.
func landlockRules(version, errata int) (rules unix.LandlockRulesetAttr, size uintptr) {
	rules.Handled_access_fs, size = landlockFiles, unsafe.Offsetof(rules.Handled_access_net)
	for _, f := range []struct {
		since int
		what  uint64
	}{{landlockRefer, unix.LANDLOCK_ACCESS_FS_REFER}, {landlockTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {landlockDevices, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {landlockSockets, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}} {
		if version >= f.since {
			rules.Handled_access_fs |= f.what
		}
	}
	if version >= landlockNetwork {
		rules.Handled_access_net, size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, unsafe.Offsetof(rules.Scoped)
	}
	if version >= landlockScopes {
		rules.Scoped, size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, unsafe.Offsetof(rules.Quiet_access_fs)
		if version >= landlockThreads || errata&erratumSignals != 0 {
			rules.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	return rules, size
}

// landlockRestrict restricts all threads, or none.
func landlockRestrict(fd uintptr, version int) error {
	if version < landlockThreads {
		return onAllThreads(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, unix.LANDLOCK_RESTRICT_SELF_TSYNC, 0); errno != 0 {
		return errno
	}
	return nil
}

// limitCPU makes the system end the process after it has used its processor
// time.
func limitCPU(seconds uint64) error {
	if seconds == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("read the processor time of the process: %w", err)
	}
	// The hard limit stays: raising it again would need special rights.
	now.Cur = min(seconds, now.Max)
	if err := errors.Join(resetHandler(unix.SIGXCPU), unix.Setrlimit(unix.RLIMIT_CPU, &now)); err != nil {
		return fmt.Errorf("limit the processor time of the process: %w", err)
	}
	return nil
}

// resetHandler restores the default action of a signal. The Go runtime handles
// every signal, and ignores those that the program does not use.
func resetHandler(signal unix.Signal) error {
	var action [64]byte // all zero, and larger than on any architecture
	var errno error
	for _, maskSize := range []uintptr{8, 16} { // 64 or 128 signals
		_, _, failed := unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
		if failed == 0 {
			return nil
		}
		errno = failed
	}
	return errno
}

// CPUTime returns the processor time of a process.
func CPUTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // the scheduler clock of all threads
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &now); err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// SetCPULimit sets the total processor time of a process of the same user that
// has entered a sandbox with a limit.
func SetCPULimit(pid int, limit time.Duration) error {
	var now unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now)
	if err == nil {
		now.Cur = uint64(limit / time.Second) // fails above the hard limit
		err = unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
	}
	if err != nil {
		return fmt.Errorf("set processor time of a process: %w", err)
	}
	return nil
}

// PrepareSupervisor prepares this process for running a program with at most
// its own rights, and for outliving all descendants: orphans become children of
// this process. It closes inherited descriptors other than the standard streams
// and those that are closed on exec. Programs started by the calling thread
// cannot gain rights by execve, and leave no core dumps.
func PrepareSupervisor() error {
	return errors.Join(
		closeInherited(),
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		prctl("no_new_privs", unix.PR_SET_NO_NEW_PRIVS, 1),
		prctl("undumpable", unix.PR_SET_DUMPABLE, 0),
		prctl("subreaper", unix.PR_SET_CHILD_SUBREAPER, 1),
	)
}

func prctl(name string, option int, value uintptr) error {
	if err := unix.Prctl(option, value, 0, 0, 0); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
