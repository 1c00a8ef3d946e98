//go:build !unix

package loader

import "io/fs"

// executable reports true: the system says by the name what may be executed.
func executable(fs.FileInfo) bool { return true }

// writable reports false: modes say nothing of that here.
func writable(fs.FileInfo) bool { return false }
