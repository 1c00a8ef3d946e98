//go:build !windows

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

// checkDirWritable returns the reason why this process cannot create files in a directory, as
// far as the system reports it without trying.
func checkDirWritable(folder string) error {
	if isPseudoFS(folder) {
		return fmt.Errorf("cannot create files in %s, a kernel file system: %w", folder, fs.ErrPermission)
	}
	const write, search = 2, 1 // W_OK and X_OK of access(2)
	if err := access(folder, write|search); err != nil {
		return &fs.PathError{Op: "write in", Path: folder, Err: err}
	}
	return nil
}

// lockAttempts and lockPause bound the time that [lock] waits for a child of the
// previous holder: between fork and exec it has a copy of the file, and so of the lock.
const (
	lockAttempts = 20
	lockPause    = 10 * time.Millisecond
)

// lock locks a file for this process until it is closed or the process exits.
func lock(name string) (*os.File, error) {
	return lockWith(name, func() { time.Sleep(lockPause) })
}

// lockWith is lock with an injected pause between attempts.
func lockWith(name string, pause func()) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || attempt == lockAttempts {
			break
		}
		pause()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%w: %s%s", ErrInUse, name, holder(f)), f.Close())
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	// The id is for the error message of another process.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	return f, nil
}

// holder returns the process that locked a file, as recorded in the file.
func holder(f *os.File) string {
	var text [20]byte
	n, _ := f.ReadAt(text[:], 0)
	if pid, err := strconv.Atoi(string(text[:n])); err == nil && pid > 0 {
		return fmt.Sprintf(" is held by process %d", pid)
	}
	return " is held"
}

// checkPrivate rejects a file that other users can read or write.
func checkPrivate(f file, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if rights := info.Mode().Perm(); rights&0o077 != 0 {
		return fmt.Errorf("%s is accessible to other users (%v); run chmod go-rwx", name, rights)
	}
	return nil
}
