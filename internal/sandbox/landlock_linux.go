package sandbox

import (
	"errors"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
		return with(nameLandlock, err)
	}
	errata, err := landlockQuery(unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if err != nil {
		errata = 0 // a kernel that is older than the list of them
	}
	rules, size := landlockRules(version, errata)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return with(nameLandlock, errno)
	}
	err = errors.Join(landlockRestrict(fd, version), unix.Close(int(fd)))
	f := with(nameLandlock, err)
	if f.On {
		f.Detail = strconv.Itoa(version)
	}
	return f
}

// landlockQuery asks the kernel for a number.
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
