//go:build unix

package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// socketDir is the location of a socket. On Linux the path of a socket has at most 107
// bytes (unix(7)), which directories of users may exceed; a path through the open
// directory is short.
type socketDir struct {
	short  string
	folder *os.File
}

// openSocketDir opens the directory of an absolute path.
func openSocketDir(path string) (*socketDir, error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	short := path
	if runtime.GOOS == "linux" {
		short = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	}
	return &socketDir{short: short, folder: folder}, nil
}

// close closes the directory. Further calls do nothing.
func (d *socketDir) close() error {
	err := d.folder.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// lock serializes the creation of sockets in this directory: two processes that find a
// stale socket would both replace it.
func (d *socketDir) lock() (unlock func(), err error) {
	fd := int(d.folder.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	return func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }, nil
}

// checkOwner rejects a directory that belongs to another user or that others can write.
func checkOwner(folder string, info fs.FileInfo) error {
	if rights := info.Mode().Perm(); rights&0o022 != 0 {
		return fmt.Errorf("other users can write in %s (%v); run chmod go-w, or use another directory", folder, rights)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); use your own directory", folder, stat.Uid)
	}
	return nil
}
