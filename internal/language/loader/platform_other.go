//go:build !unix

package loader

import (
	"io/fs"
)

// isOwnedByOther returns false: the owner is unknown on this system.
func isOwnedByOther(fs.FileInfo) bool { return false }

// writableByGroup returns false: group permissions are unknown on this system.
func writableByGroup(fs.FileInfo) bool { return false }

// executable returns true: this system decides by file name.
func executable(fs.FileInfo) bool { return true }

// writable returns false: permissions of other users are unknown on this system.
func writable(fs.FileInfo) bool { return false }
