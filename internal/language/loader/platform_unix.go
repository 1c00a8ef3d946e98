//go:build unix

package loader

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign reports whether a file belongs to somebody who is neither the user that runs
// mcpd nor root: its owner may write it, whatever its mode says. What is on no disk
// belongs to the program, and what could not be opened, of which info is nil, to nobody.
func isOwnedByOther(info fs.FileInfo) bool {
	if info == nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// writableByGroup reports whether all members of a file's group may write it.
func writableByGroup(info fs.FileInfo) bool { return info != nil && info.Mode().Perm()&0o020 != 0 }

// executable reports whether somebody may execute a file.
func executable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// writable reports whether everyone may write a file.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
