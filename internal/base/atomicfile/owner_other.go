//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// ChownLike does nothing, as files have no owner that the process could keep.
func ChownLike(*os.File, fs.FileInfo) error { return nil }

// Owner knows no owners.
func Owner(fs.FileInfo) (uid uint32, known bool) { return 0, false }

// LinkCount returns 1: the number of links is unknown.
func LinkCount(fs.FileInfo) uint64 { return 1 }
