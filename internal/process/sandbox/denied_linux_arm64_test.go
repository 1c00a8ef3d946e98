package sandbox

import "golang.org/x/sys/unix"

// olderTries are calls that do not exist on all architectures.
func olderTries(at func(...uintptr) [6]uintptr, path uintptr) map[string]deniedCall {
	return map[string]deniedCall{"newfstatat": {unix.SYS_FSTATAT, at(0, path, 0, 0)}}
}
