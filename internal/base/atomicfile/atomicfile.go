// Package atomicfile replaces a file atomically: a reader sees the old or the new
// content, even after a crash.
//
// Package os provides the steps. The usual modules lack one of them: they do not sync
// the directory, or cannot change the owner before the rename.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write replaces or creates the file at path with exactly this mode. It writes a hidden file in the
// same directory, calls prepare for it if prepare is not nil, syncs and renames it. The content is
// durable when Write returns. A link at path is replaced, not followed.
func Write(path string, content []byte, mode fs.FileMode, prepare func(*os.File) error) error {
	return write(path, content, 0o600, func(f *os.File) error {
		if prepare != nil {
			if err := prepare(f); err != nil {
				return err
			}
		}
		return f.Chmod(mode)
	})
}

// Replace is [Write] for a file that other users may read. An existing file keeps its mode. A new one has
// mode 0644 without the bits of the umask.
func Replace(path string, content []byte) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return Write(path, content, info.Mode().Perm(), nil)
	}
	return write(path, content, 0o644, nil)
}

// write creates the hidden file with a mode that the umask limits.
func write(path string, content []byte, mode fs.FileMode, prepare func(*os.File) error) (err error) {
	folder, name := filepath.Split(path)
	name = filepath.Join(folder, fmt.Sprintf(".%s.%d", name, rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	_, err = f.Write(content)
	if err == nil && prepare != nil {
		err = prepare(f)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// OpenRegular opens a file for reading. It does not block if path is a pipe without a
// writer; the caller must check the mode of the opened file.
func OpenRegular(path string) (*os.File, error) { return os.OpenFile(path, readFlags(), 0) }

// OpenRegularIn is [OpenRegular] below a directory.
func OpenRegularIn(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, readFlags(), 0)
}

func readFlags() int {
	if runtime.GOOS == "windows" { // pipes cannot be opened by path
		return os.O_RDONLY
	}
	return os.O_RDONLY | syscall.O_NONBLOCK
}

// SyncDir makes the names in a directory durable. On Windows they always are.
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
