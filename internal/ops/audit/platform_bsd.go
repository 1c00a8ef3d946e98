//go:build !linux && !windows

package audit

import (
	"os"
	"syscall"
)

// isPseudoFS reports whether a directory belongs to a kernel file system. Here none
// does.
func isPseudoFS(string) bool { return false }

// access checks the permissions of the real user.
func access(name string, to uint32) error { return syscall.Access(name, to) }

func syncData(f *os.File) error { return f.Sync() }
