//go:build !unix

package apikey

import (
	"fmt"
	"io/fs"
	"os"
	"time"
)

// checkOwner refuses what is no file. Who may read it is for the access list of
// its folder.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// lockTimeout is how long a change waits for another.
const lockTimeout = 10 * time.Second

// lock waits until nobody else has made the lock file.
func lock(path string) (unlock func(), err error) {
	for until := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(path) }, nil
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("lock keys: %w; remove the file if nobody else changes keys", err)
		}
	}
}

// chownLikeTarget does nothing: who owns a file is for the access list of its folder.
func chownLikeTarget(*os.File, string) error { return nil }
