//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

const (
	// openNonBlocking prevents blocking on the other end of a pipe.
	openNonBlocking = syscall.O_NONBLOCK
	// openDirectory fails on anything but a directory.
	openDirectory = syscall.O_DIRECTORY
)

func deviceOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}
