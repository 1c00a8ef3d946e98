//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setRlimits limits the memory of the process, and prevents opening files,
// writing files and core dumps.
func setRlimits(memory uint64) error {
	if memory == 0 {
		memory = unix.RLIM_INFINITY
	}
	for _, b := range []struct {
		of    int
		limit uint64
	}{{unix.RLIMIT_DATA, memory}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_NOFILE, 0}} {
		var now unix.Rlimit
		if err := unix.Getrlimit(b.of, &now); err != nil {
			return fmt.Errorf("read the limits of the process: %w", err)
		}
		limit := min(b.limit, now.Max)
		if err := unix.Setrlimit(b.of, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	return nil
}

// closeInherited closes inherited descriptors, other than the standard streams.
// The descriptors that the process opened itself are closed on exec, inherited
// ones are not.
func closeInherited() error {
	names, err := openDescriptors()
	if err != nil {
		return fmt.Errorf("list open descriptors: %w", err)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // closed meanwhile, or opened by this process
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close descriptor: %w", err)
		}
	}
	return nil
}

// openDescriptors returns the names of the open descriptors.
func openDescriptors() (names []string, err error) {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		var f *os.File
		if f, err = os.Open(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		names, err = f.Readdirnames(-1)
		return names, errors.Join(err, f.Close())
	}
	return nil, err
}
