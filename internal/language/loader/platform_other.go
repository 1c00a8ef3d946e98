//go:build !unix

package loader

import (
	"io/fs"
)

// isOwnedByOther reports false: nothing tells here whose a file is.
func isOwnedByOther(fs.FileInfo) bool { return false }

// writableByGroup reports false: nothing tells here which group may write a file.
func writableByGroup(fs.FileInfo) bool { return false }

// executable reports true: the system says by the name what may be executed.
func executable(fs.FileInfo) bool { return true }

// writable reports false: modes say nothing of that here.
func writable(fs.FileInfo) bool { return false }
