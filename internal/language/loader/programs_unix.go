//go:build unix

package loader

import "io/fs"

// executable reports whether somebody may execute a file.
func executable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// writable reports whether everyone may write a file.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
