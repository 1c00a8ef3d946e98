package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Oversee readies this process for running another one, which it has no right to
// begin with that it lacks itself, and for outliving all that this one starts:
// whoever of them loses its parent becomes a child of this process. Descriptors
// that the process had inherited are closed, other than its standard streams and
// those that are closed on exec. What is begun by the thread that calls it can
// get no new rights by execve, and nothing leaves a core behind.
func Oversee() error {
	return errors.Join(
		descriptors(),
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
