package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// place is where a socket stands. The path of a socket has 107 bytes at most
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
	return &place{short: fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), folder: folder}, nil
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
