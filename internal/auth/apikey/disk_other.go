//go:build !unix

package apikey

import (
	"fmt"
	"io/fs"
	"os"
	"time"
)

// checkOwner rejects a path that is not a regular file. The access list of its
// directory controls who may read it.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// lockTimeout is how long an edit waits for another one.
const lockTimeout = 10 * time.Second

// lock creates the lock file, after waiting for another process to remove it.
func lock(path string) (unlock func(), err error) {
	for until := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(path) }, nil
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("lock keys: %w; remove the file if no other process edits keys", err)
		}
	}
}

// chownLikeTarget does nothing: the access list of the directory controls
// access.
func chownLikeTarget(*os.File, string) error { return nil }
