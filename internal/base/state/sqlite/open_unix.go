//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner rejects files of other users, hard links, and forbidden mode bits.
func checkOwner(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	if rights := info.Mode().Perm(); rights&forbidden != 0 {
		return fmt.Errorf("%s is accessible to other users (%v); run chmod go-rwx", path, rights)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); use another directory for the state store", path, stat.Uid)
	}
	if info.Mode().IsRegular() && stat.Nlink > 1 {
		return fmt.Errorf("%s has another hard link; move it away", path)
	}
	return nil
}
