//go:build !unix

package worker

import "syscall"

// apart starts a process like any other where there are no groups.
func apart() *syscall.SysProcAttr { return nil }
