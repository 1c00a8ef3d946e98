//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// Where the kernel puts what a filter looks at.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// filter returns the program that lets calls through and answers others with
// refused. Calls by the numbers of another architecture end the process.
// clone3, whose flags are out of sight, is said not to exist, so that a C
// library makes its threads by clone.
func filter(calls []call, refused uint32) []unix.SockFilter {
	code := []unix.SockFilter{
		load(atArchitecture),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: architecture},
		answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber),
	}
	for _, c := range calls {
		code = append(code, c.code(refused)...)
	}
	return append(code,
		unless(unix.SYS_CLONE3, 1),
		answer(uint32(unix.SECCOMP_RET_ERRNO)|uint32(unix.ENOSYS)),
		answer(refused))
}

// code is what a call adds to a filter, which has loaded the number.
func (c call) code(refused uint32) []unix.SockFilter {
	number := uint32(c.number)
	if c.when == always {
		return []unix.SockFilter{unless(number, 1), answer(unix.SECCOMP_RET_ALLOW)}
	}
	return []unix.SockFilter{
		unless(number, 5),
		load(atArguments + 8*c.when.argument),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.when.mask},
		unless(c.when.value, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(refused),
	}
}

// load loads four bytes of what the kernel tells of a call.
func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// unless skips as many instructions when what is loaded is not value.
func unless(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

// answer ends the filter.
func answer(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}
