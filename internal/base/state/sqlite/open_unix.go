//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses what belongs to somebody else, what has another name too,
// and what has any of the rights that are forbidden.
func checkOwner(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	if rights := info.Mode().Perm(); rights&forbidden != 0 {
		return fmt.Errorf("%s is open to other users (%v); take their rights away with chmod go-rwx", path, rights)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); give the state store a folder of its own", path, stat.Uid)
	}
	if info.Mode().IsRegular() && stat.Nlink > 1 {
		return fmt.Errorf("%s has another name too; move it away", path)
	}
	return nil
}
