package audit

import (
	"os"
	"syscall"
)

// isPseudoFS reports whether a directory belongs to a kernel file system such as proc.
func isPseudoFS(folder string) bool {
	var at syscall.Statfs_t
	if syscall.Statfs(folder, &at) != nil {
		return false
	}
	switch uint32(at.Type) {
	case 0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x73636673, 0x74726163, 0x1cd1: // proc, sysfs, cgroup, cgroup2, debugfs, securityfs, tracefs, devpts
		return true
	}
	return false
}

// access checks the permissions of the effective user and capabilities.
func access(name string, to uint32) error {
	const here, effective = -0x64, 0x200 // AT_FDCWD, AT_EACCESS
	return syscall.Faccessat(here, name, to, effective)
}

// syncData makes content and size durable, but not timestamps.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if err != syscall.EINTR {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
