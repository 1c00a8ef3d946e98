//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// call is a system call that is let through.
type call struct {
	number uintptr
	when   condition
}

// condition holds for a call when the bits of mask in one of its arguments are
// those of value. Only the lower half of an argument is looked at, which is all
// of it that the kernel uses of those that we look at. The zero condition holds.
type condition struct {
	argument    uint32
	mask, value uint32
}

// always is for calls that are let through whatever their arguments are.
var always condition

// threadFlags are those that threads are made with, by Go or a C library; no
// namespace and no process comes of them.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
	unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID | unix.CLONE_DETACHED

// needed are the calls that the runtime of Go and what reads and writes on open
// descriptors make after the start of the process pid. Those in the last part
// are what a C library makes for threads and memory, where there is one.
func needed(pid uint32) []call {
	return []call{
		{unix.SYS_FUTEX, always},
		{unix.SYS_READ, always},
		{unix.SYS_WRITE, always},
		{unix.SYS_EPOLL_PWAIT, always},
		{unix.SYS_NANOSLEEP, always},
		{unix.SYS_SCHED_YIELD, always},
		{unix.SYS_GETPID, always},
		{unix.SYS_GETTID, always},
		{unix.SYS_TGKILL, condition{0, ^uint32(0), pid}},
		{unix.SYS_RT_SIGRETURN, always},
		{unix.SYS_RT_SIGPROCMASK, always},
		{unix.SYS_RT_SIGACTION, always},
		{unix.SYS_SIGALTSTACK, always},
		{unix.SYS_RESTART_SYSCALL, always},
		{unix.SYS_MADVISE, always},
		{unix.SYS_MUNMAP, always},
		{unix.SYS_MMAP, condition{2, unix.PROT_EXEC, 0}},
		{unix.SYS_MPROTECT, condition{2, unix.PROT_EXEC, 0}},
		{unix.SYS_PRCTL, condition{0, ^uint32(0), unix.PR_SET_VMA}},
		{unix.SYS_CLONE, condition{0, ^uint32(threadFlags) | unix.CLONE_THREAD, unix.CLONE_THREAD}},
		{unix.SYS_EPOLL_CTL, always},
		{unix.SYS_CLOSE, always},
		{unix.SYS_PREAD64, always}, // of the limit of processors, which stays open
		{unix.SYS_SCHED_GETAFFINITY, always},
		{unix.SYS_GETRANDOM, always},
		{unix.SYS_GETRUSAGE, always},
		{unix.SYS_CLOCK_GETTIME, always},
		{unix.SYS_CLOCK_NANOSLEEP, always},
		{unix.SYS_GETTIMEOFDAY, always},
		{unix.SYS_KILL, condition{0, ^uint32(0), pid}},
		{unix.SYS_IOCTL, condition{1, ^uint32(0), unix.TCGETS}}, // compilers ask whether they write to a terminal
		{unix.SYS_EXIT, always},
		{unix.SYS_EXIT_GROUP, always},

		{unix.SYS_BRK, always},
		{unix.SYS_MREMAP, always},
		{unix.SYS_RSEQ, always},
		{unix.SYS_SET_ROBUST_LIST, always},
	}
}
