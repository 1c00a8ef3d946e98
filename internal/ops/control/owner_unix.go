//go:build unix

package control

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a folder that belongs to somebody else, or in which others
// may write.
func checkOwner(folder string, info fs.FileInfo) error {
	if rights := info.Mode().Perm(); rights&0o022 != 0 {
		return fmt.Errorf("others may write in %s (%v); take that right away with chmod go-w, or name a socket elsewhere", folder, rights)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); name a socket in a folder of your own", folder, stat.Uid)
	}
	return nil
}
