//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// NonBlocking is the flag by which opening a pipe does not wait for its other end.
const NonBlocking = syscall.O_NONBLOCK

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
