//go:build !unix

package files

import "io/fs"

// Systems without these flags open nothing that could be waited for.
const noWait, onlyFolder = 0, 0

// deviceOf returns the same for all files: the system does not tell.
func deviceOf(fs.FileInfo) uint64 { return 0 }

// namesOf returns 1: the system does not tell.
func namesOf(fs.FileInfo) uint64 { return 1 }
