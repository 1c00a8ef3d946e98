//go:build unix

package postgrestest

import (
	"os"
	"os/exec"
	"syscall"
)

// nobody is the user that runs the server if the test runs as root, which PostgreSQL refuses.
const nobody = 65534

// handOver changes the owner of a file to that user.
func handOver(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}

// asOther runs a command as that user.
func asOther(c *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}
