//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errThread reports that a thread has a different filter.
var errThread = errors.New("a thread has another filter")

// seccomp makes the kernel deny all system calls, in all threads, that a
// process without I/O does not need.
func seccomp(strict bool) error {
	denied := uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	if strict {
		denied = unix.SECCOMP_RET_KILL_PROCESS
	}
	code := filter(allowedCalls(uint32(os.Getpid())), denied)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return errThread
	}
	return nil
}

// allowedCall is an allowed system call.
type allowedCall struct {
	number uintptr
	when   condition
}

// condition is true if the bits of mask in an argument equal value. Only the
// lower half of an argument is checked; the kernel uses no more of these
// arguments. The zero condition is always true.
type condition struct {
	argument    uint32
	mask, value uint32
}

// always is the condition of calls with any arguments.
var always condition

// threadFlags are the clone flags of new threads, by Go or a C library; they
// create no namespace and no process.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
	unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID | unix.CLONE_DETACHED

// allowedCalls returns the calls that the Go runtime and I/O on open
// descriptors make after the start of the process pid. The last part is for the
// threads and memory of a C library.
func allowedCalls(pid uint32) []allowedCall {
	return []allowedCall{
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
		{unix.SYS_PREAD64, always}, // reads the processor limit, which stays open
		{unix.SYS_SCHED_GETAFFINITY, always},
		{unix.SYS_GETRANDOM, always},
		{unix.SYS_GETRUSAGE, always},
		{unix.SYS_CLOCK_GETTIME, always},
		{unix.SYS_CLOCK_NANOSLEEP, always},
		{unix.SYS_GETTIMEOFDAY, always},
		{unix.SYS_KILL, condition{0, ^uint32(0), pid}},
		{unix.SYS_IOCTL, condition{1, ^uint32(0), unix.TCGETS}}, // compilers check for a terminal
		{unix.SYS_EXIT, always},
		{unix.SYS_EXIT_GROUP, always},

		{unix.SYS_BRK, always},
		{unix.SYS_MREMAP, always},
		{unix.SYS_RSEQ, always},
		{unix.SYS_SET_ROBUST_LIST, always},
	}
}

// The offsets of the data that a filter reads.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// architecture is the kernel's id of this program's architecture.
var architecture = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// filter returns the program that allows calls and answers others with denied.
// Calls with the numbers of another architecture end the process. clone3, whose
// flags a filter cannot read, fails as not implemented, so that a C library
// creates threads with clone.
func filter(calls []allowedCall, denied uint32) []unix.SockFilter {
	code := []unix.SockFilter{
		load(atArchitecture),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: architecture},
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber),
	}
	for _, c := range calls {
		code = append(code, c.code(denied)...)
	}
	return append(code,
		skipUnless(unix.SYS_CLONE3, 1),
		ret(uint32(unix.SECCOMP_RET_ERRNO)|uint32(unix.ENOSYS)),
		ret(denied))
}

// code returns the instructions for a call; the filter has loaded the number.
func (c allowedCall) code(denied uint32) []unix.SockFilter {
	number := uint32(c.number)
	if c.when == always {
		return []unix.SockFilter{skipUnless(number, 1), ret(unix.SECCOMP_RET_ALLOW)}
	}
	return []unix.SockFilter{
		skipUnless(number, 5),
		load(atArguments + 8*c.when.argument),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.when.mask},
		skipUnless(c.when.value, 1),
		ret(unix.SECCOMP_RET_ALLOW),
		ret(denied),
	}
}

// load loads four bytes of the call data.
func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// skipUnless skips instructions if the loaded value is not value.
func skipUnless(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

// ret ends the filter.
func ret(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}
