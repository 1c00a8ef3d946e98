package audit

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// checkDirWritable always succeeds: permissions are known only when used.
func checkDirWritable(string) error { return nil }

// lock opens a file exclusively until it is closed or the process exits.
func lock(name string) (*os.File, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	const alone = 0 // no sharing
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, alone, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation syscall.Errno = 32
	if errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("%w: %s is held", ErrInUse, name)
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	return os.NewFile(uintptr(handle), name), nil
}

// checkPrivate accepts every file: permissions are access control lists that new files
// inherit from their directory.
func checkPrivate(file, string) error { return nil }

func syncData(f *os.File) error { return f.Sync() }
