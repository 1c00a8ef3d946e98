//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// nonBlocking has the opening of a pipe return.
const nonBlocking = syscall.O_NONBLOCK

// syncFolder makes what was renamed in a folder last.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
