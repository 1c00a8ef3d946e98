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

// OpenRegular opens a file for reading. It returns at once if path is a pipe that
// nobody writes to: the caller is to check the mode of what it has opened.
func OpenRegular(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|NonBlocking, 0) }
