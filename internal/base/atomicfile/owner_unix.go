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

// Owner returns the id of the user who owns a file. known is false on other systems than Unix.
func Owner(info fs.FileInfo) (uid uint32, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}

// LinkCount returns the number of hard links of a file, and 1 if the system does not tell.
func LinkCount(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
