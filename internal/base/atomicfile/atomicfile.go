// Package atomicfile replaces a file as a whole: a reader sees the old content or the
// new, also after a crash.
//
// Package os has the steps, and the usual modules leave one of them out: they neither
// sync the folder nor can they change the owner before the file has its name.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write replaces the file at path, or makes it. It writes a hidden file beside it,
// calls prepare for that one if it is not nil, and renames it once it is on the disk.
// The content is durable when Write returns. A link at path is replaced, not followed.
func Write(path string, content []byte, mode fs.FileMode, prepare func(*os.File) error) (err error) {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	if err == nil && prepare != nil {
		err = prepare(f)
	}
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(folder)
}

// OpenRegular opens a file for reading. It returns at once if path is a pipe that has no
// writer: the caller must check the mode of the file that it opened.
func OpenRegular(path string) (*os.File, error) {
	flag := os.O_RDONLY
	if runtime.GOOS != "windows" { // where no pipe can be opened by its path
		flag |= syscall.O_NONBLOCK
	}
	return os.OpenFile(path, flag, 0)
}

// SyncDir makes the names in a folder durable. On Windows they are durable without it.
func SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
