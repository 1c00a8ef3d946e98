package lockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// Read reads a lock from its file. The error wraps [fs.ErrNotExist] where there is none:
// what that means is for the caller, as a lock that was lost takes in anything under
// [FirstUse].
func Read(path string) (*Lock, error) {
	file, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	l, err := Parse(file)
	if err != nil {
		return nil, fmt.Errorf("read lock: %s: %w", path, err)
	}
	return l, nil
}

func read(path string) ([]byte, error) {
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // Parse refuses what is longer
}

// Write writes a lock to its file, mode 0644, so that a reader sees the old lock or the
// new one, and the new one lasts once it returns. What is in the place of the file and is
// none, such as a link, is refused, and so is a lock that [Parse] would find too long.
// Of two programs that write at the same time, the last one wins.
func Write(path string, l *Lock) error {
	if err := write(path, l); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

func write(path string, l *Lock) error {
	if l.Len() > maxFile {
		return fmt.Errorf("%s would be longer than %d MiB", path, maxFile>>20)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return atomicfile.Write(path, l.Encode(), 0o644, nil)
}
