//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

const (
	// noWait keeps opening from waiting for the other end of a pipe.
	openNonBlocking = syscall.O_NONBLOCK
	// onlyFolder keeps anything but a folder from being opened.
	openDirectory = syscall.O_DIRECTORY
)

func deviceOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}

// namesOf returns how many names a file has.
func linkCount(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
