//go:build !unix

package files

import "io/fs"

// Systems without these flags do not block on open.
const openNonBlocking, openDirectory = 0, 0

// deviceOf returns 0: the device is unknown.
func deviceOf(fs.FileInfo) uint64 { return 0 }
