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

// place is where a socket stands. On Linux the path of a socket has 107 bytes at most
// (unix(7)), and the folders of users may have more: by way of the folder that is
// open, any path is short.
type place struct {
	short  string
	folder *os.File
}

// enter opens the folder of an absolute path.
func enter(path string) (*place, error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	short := path
	if runtime.GOOS == "linux" {
		short = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	}
	return &place{short: short, folder: folder}, nil
}

// leave closes the folder. Another call does nothing.
func (p *place) leave() error {
	err := p.folder.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// lock keeps other processes from looking for a socket in this folder while this
// one makes its own: two that find a dead one would both replace it.
func (p *place) lock() (unlock func(), err error) {
	fd := int(p.folder.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	return func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }, nil
}

// checkOwner refuses a folder that belongs to somebody else, or in which others
// may write.
func checkOwner(folder string, info fs.FileInfo) error {
	if rights := info.Mode().Perm(); rights&0o022 != 0 {
		return fmt.Errorf("others may write in %s (%v); take that right away with chmod go-w, or name a socket elsewhere", folder, rights)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); name a socket in a folder of your own", folder, stat.Uid)
	}
	return nil
}
