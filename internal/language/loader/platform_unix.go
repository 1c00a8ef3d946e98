//go:build unix

package loader

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwnedByOther reports whether a file belongs to a user other than root and the user of mcpd.
// Its owner can write it, whatever its mode. A file that is not on disk belongs to the program.
// info is nil if a file could not be opened.
func isOwnedByOther(info fs.FileInfo) bool {
	if info == nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// writableByGroup reports whether the group of a file may write it.
func writableByGroup(info fs.FileInfo) bool { return info != nil && info.Mode().Perm()&0o020 != 0 }

// executable reports whether any user may execute a file.
func executable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// writable reports whether every user may write a file.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
