//go:build !linux

package worker

import "os/exec"

// begin starts a program: how late it wakes is up to the system.
func begin(cmd *exec.Cmd) error { return cmd.Start() }
