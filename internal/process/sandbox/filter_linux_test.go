//go:build amd64 || arm64

package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// seen is the data that a filter sees of a call.
type seen struct {
	architecture, number uint32
	args                 [6]uint64
}

// at returns the four bytes at an offset, on a little-endian machine.
func (s seen) at(offset uint32) uint32 {
	switch {
	case offset == atNumber:
		return s.number
	case offset == atArchitecture:
		return s.architecture
	}
	offset -= atArguments
	return uint32(s.args[offset/8] >> (offset % 8 * 8))
}

// runFilter runs a filter as the kernel does.
func runFilter(t *testing.T, code []unix.SockFilter, s seen) uint32 {
	t.Helper()
	var loaded uint32
	for i := 0; i < len(code); i++ {
		switch c := code[i]; c.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			loaded = s.at(c.K)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			loaded &= c.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if loaded == c.K {
				i += int(c.Jt)
			} else {
				i += int(c.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return c.K
		default:
			t.Fatalf("instruction %d = %#x", i, c.Code)
		}
	}
	t.Fatal("the filter does not end")
	return 0
}

func TestFilter(t *testing.T) {
	const refused, pid = 77, 4711
	code := filter(allowedCalls(pid), refused)
	goThread := uint64(unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD)
	for name, c := range map[string]struct {
		call seen
		want uint32
	}{
		"read":                         {seen{architecture, unix.SYS_READ, [6]uint64{}}, unix.SECCOMP_RET_ALLOW},
		"read of another architecture": {seen{architecture ^ 1, unix.SYS_READ, [6]uint64{}}, unix.SECCOMP_RET_KILL_PROCESS},
		"read by an x32 number":        {seen{architecture, 1<<30 | unix.SYS_READ, [6]uint64{}}, refused},
		"unknown number":               {seen{architecture, 1<<32 - 1, [6]uint64{}}, refused},
		"Go thread":                    {seen{architecture, unix.SYS_CLONE, [6]uint64{goThread}}, unix.SECCOMP_RET_ALLOW},
		"C library thread":             {seen{architecture, unix.SYS_CLONE, [6]uint64{0x3d0f00}}, unix.SECCOMP_RET_ALLOW},
		"thread in a namespace":        {seen{architecture, unix.SYS_CLONE, [6]uint64{goThread | unix.CLONE_NEWUSER}}, refused},
		"traced thread":                {seen{architecture, unix.SYS_CLONE, [6]uint64{goThread | unix.CLONE_PTRACE}}, refused},
		"process":                      {seen{architecture, unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}}, refused},
		"clone3":                       {seen{architecture, unix.SYS_CLONE3, [6]uint64{}}, uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)},
		"signal to itself":             {seen{architecture, unix.SYS_TGKILL, [6]uint64{pid, 1, 1}}, unix.SECCOMP_RET_ALLOW},
		"signal to another process":    {seen{architecture, unix.SYS_TGKILL, [6]uint64{pid + 1, 1, 1}}, refused},
		"signal to all processes":      {seen{architecture, unix.SYS_KILL, [6]uint64{1<<64 - 1, 9}}, refused},
		"memory":                       {seen{architecture, unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ | unix.PROT_WRITE}}, unix.SECCOMP_RET_ALLOW},
		"executable memory":            {seen{architecture, unix.SYS_MMAP, [6]uint64{0, 1, unix.PROT_READ | unix.PROT_EXEC}}, refused},
		"memory made executable":       {seen{architecture, unix.SYS_MPROTECT, [6]uint64{0, 1, unix.PROT_EXEC}}, refused},
		"memory name":                  {seen{architecture, unix.SYS_PRCTL, [6]uint64{unix.PR_SET_VMA}}, unix.SECCOMP_RET_ALLOW},
		"process name":                 {seen{architecture, unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NAME}}, refused},
	} {
		if got := runFilter(t, code, c.call); got != c.want {
			t.Errorf("%s: %#x, want %#x", name, got, c.want)
		}
	}
}
