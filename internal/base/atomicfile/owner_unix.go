//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// ChownLike gives a file the owner and the group of another one. It does nothing unless the process
// runs as root.
func ChownLike(f *os.File, other fs.FileInfo) error {
	if stat, ok := other.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return f.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}
