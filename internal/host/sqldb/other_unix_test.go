//go:build unix

package sqldb_test

import (
	"os"
	"os/exec"
	"syscall"
)

// nobody is whom root runs a server as, which takes no root.
const nobody = 65534

// handOver gives a file to the user that runs the server.
func handOver(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}

// asOther lets a command run as that user.
func asOther(c *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}
