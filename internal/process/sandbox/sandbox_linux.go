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

// enter gives up rights, then what new ones could be got with.
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
		// Threads that had it not have it of the one that has set the filter.
		privs = facility(nameNoNewPrivs, nil)
	}
	return Report{facility(nameRlimits, nil), open, privs, dump, calls, land}, nil
}

// errCgo says that the threads of the process are not all known.
var errCgo = errors.New("the program is built with cgo; build it with CGO_ENABLED=0")

// onAllThreads does a system call on all threads, or on none.
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

// noNewPrivs keeps all threads from ever getting rights by execve, or only
// this one where the others are not known.
func noNewPrivs() error {
	err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	if errors.Is(err, errCgo) {
		err = errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), err)
	}
	return err
}

// What the versions of Landlock can deny, as of the first that can.
const (
	landlockFiles = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // all up to it

	landlockRefer    = 2
	landlockTruncate = 3
	landlockNetwork  = 4
	landlockDevices  = 5
	landlockScopes   = 6
	landlockThreads  = 8 // restricts all threads
	landlockSockets  = 9
)

// erratumSignals is the bit of the fix after which threads that were
// restricted one by one may signal each other, as the scheduler of Go does.
const erratumSignals = 1 << 1

// landlock denies all that can be denied, without exception, in all threads.
func landlock() Facility {
	version, err := landlockQuery(unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != nil {
		return facility(nameLandlock, err)
	}
	errata, err := landlockQuery(unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if err != nil {
		errata = 0 // a kernel that is older than the list of them
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

func landlockQuery(what uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, what)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// landlockRules returns what a version can deny, and how many bytes of it that
// version knows.
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

// processor has the system end the process once it has spent so many seconds.
func limitCPU(seconds uint64) error {
	if seconds == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("read the processor time of the process: %w", err)
	}
	// The hard limit stays: nobody without special rights could raise it again.
	now.Cur = min(seconds, now.Max)
	if err := errors.Join(resetHandler(unix.SIGXCPU), unix.Setrlimit(unix.RLIMIT_CPU, &now)); err != nil {
		return fmt.Errorf("limit the processor time of the process: %w", err)
	}
	return nil
}

// undoHandler has a signal do what it does without a handler. The runtime of Go has
// one for each, which ignores those that nobody asks for.
func resetHandler(signal unix.Signal) error {
	var action [64]byte // all zero, and larger than that of any architecture
	var errno error
	for _, maskSize := range []uintptr{8, 16} { // there are 64 signals, or 128
		_, _, failed := unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
		if failed == 0 {
			return nil
		}
		errno = failed
	}
	return errno
}

// Spent returns how much processor time a process has spent.
func CPUTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // the clock of the scheduler, of all threads
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &now); err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// Allow lets a process of the same user, which has entered a sandbox with a bound of
// processor time, spend so much of it since it was started.
func SetCPULimit(pid int, most time.Duration) error {
	var now unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now)
	if err == nil {
		now.Cur = uint64(most / time.Second) // which fails where it is more than the hard limit
		err = unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
	}
	if err != nil {
		return fmt.Errorf("give a process processor time: %w", err)
	}
	return nil
}

// Oversee readies this process for running another one, which it has no right to
// begin with that it lacks itself, and for outliving all that this one starts:
// whoever of them loses its parent becomes a child of this process. Descriptors
// that the process had inherited are closed, other than its standard streams and
// those that are closed on exec. What is begun by the thread that calls it can
// get no new rights by execve, and nothing leaves a core behind.
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
