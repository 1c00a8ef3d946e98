//go:build unix

package apikey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// checkOwner refuses what is no file, and what others may read or write.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if rights := info.Mode().Perm(); rights&0o077 != 0 {
		return fmt.Errorf("%s is open to other users (%v); take their rights away with chmod go-rwx", path, rights)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%s belongs to another user (%d); make it that of mcpd with chown", path, stat.Uid)
	}
	return nil
}

// lock waits until nobody else holds the lock.
func lock(path string) (unlock func(), err error) {
	f, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("lock keys: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock keys: %w", err)
	}
	return func() { _ = f.Close() }, nil // the lock ends with its file
}

// openLock opens the lock file, or makes it.
func openLock(path string) (*os.File, error) {
	const flags = os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := chownLikeTarget(f, strings.TrimSuffix(path, lockSuffix)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// giveAway gives a file that root has just made to whom the file in that place belongs,
// or the folder where there is none: the server that reads it is hardly root. What was
// there before must not be given away, as it may be a second name of anything.
func chownLikeTarget(made *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return made.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}
