package sandbox

import "golang.org/x/sys/unix"

// olderTries are calls that do not exist on all architectures, and some with
// numbers of the x32 interface.
func olderTries(at func(...uintptr) [6]uintptr, path uintptr) map[string]deniedCall {
	return map[string]deniedCall{
		"open":         {unix.SYS_OPEN, at(path, unix.O_RDONLY|unix.O_CLOEXEC)},
		"creat":        {unix.SYS_CREAT, at(path, 0)},
		"newfstatat":   {unix.SYS_NEWFSTATAT, at(0, path, 0, 0)},
		"stat":         {unix.SYS_STAT, at(path, 0)},
		"unlink":       {unix.SYS_UNLINK, at(0)},
		"rename":       {unix.SYS_RENAME, at(0, 0)},
		"pipe":         {unix.SYS_PIPE, at(0)},
		"dup2":         {unix.SYS_DUP2, at(bad, bad)},
		"arch_prctl":   {unix.SYS_ARCH_PRCTL, at(bad, 0)},
		"x32 getpid":   {1<<30 | unix.SYS_GETPID, at()},
		"x32 execve":   {1<<30 | 520, at(0, 0, 0)},
		"epoll_wait":   {unix.SYS_EPOLL_WAIT, at(bad)},
		"modify_ldt":   {unix.SYS_MODIFY_LDT, at(bad)},
		"iopl":         {unix.SYS_IOPL, at(bad)},
		"inotify_init": {unix.SYS_INOTIFY_INIT, at()},
	}
}
