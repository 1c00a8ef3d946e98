//go:build unix

package apikey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// checkOwner rejects a path that is not a regular file, and a file that others
// may read or write. A file of root may be readable for a group of the process:
// this is how Kubernetes mounts a Secret.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if rights := info.Mode().Perm(); rights&0o077 != 0 && !(ok && rights&0o037 == 0 && stat.Uid == 0 && inGroup(int(stat.Gid))) {
		return fmt.Errorf("%s is open to other users (%v); remove their access with chmod go-rwx", path, rights)
	}
	if ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%s belongs to another user (%d); change the owner to the user of mcpd with chown", path, stat.Uid)
	}
	return nil
}

// inGroup reports whether the process, which is not root, is in a group.
func inGroup(group int) bool {
	groups, _ := os.Getgroups() // without them, the file counts as open to others
	return os.Geteuid() != 0 && (group == os.Getegid() || slices.Contains(groups, group))
}

// lock waits for an exclusive lock.
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
	return func() { _ = f.Close() }, nil // closing the file releases the lock
}

// openLock opens the lock file, or creates it.
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

// chownLikeTarget gives a file that root has just created the owner of the file
// at path, or of its directory if there is none: the server that reads it
// seldom runs as root. Only new files may change their owner, because an
// existing one may be a hard link to any file.
func chownLikeTarget(created *os.File, path string) error {
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
	return atomicfile.ChownLike(created, info)
}
