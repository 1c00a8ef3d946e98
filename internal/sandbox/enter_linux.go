package sandbox

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter gives up rights, then what new ones could be got with.
func enter(o Options) (Report, error) {
	open := with(nameDescriptors, descriptors())
	privs := with(nameNoNewPrivs, noNewPrivs())
	dump := with(nameUndumpable, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	land := landlock()
	if err := errors.Join(rlimits(o.Memory), processor(o.Processor)); err != nil {
		return nil, err
	}
	calls := with(nameSeccomp, seccomp(o.Strict))
	if calls.On {
		// Threads that had it not have it of the one that has set the filter.
		privs = with(nameNoNewPrivs, nil)
	}
	return Report{with(nameRlimits, nil), open, privs, dump, calls, land}, nil
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
