//go:build !unix

package loader

import "io/fs"

// foreign reports false: nothing tells here whose a file is.
func foreign(fs.FileInfo) bool { return false }

// writableByGroup reports false: nothing tells here which group may write a file.
func writableByGroup(fs.FileInfo) bool { return false }
