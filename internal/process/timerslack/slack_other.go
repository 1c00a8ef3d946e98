//go:build !linux

package timerslack

import "os/exec"

// Start starts a program: how late it wakes is up to the system.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

// Again does nothing: how late a program wakes is up to the system.
func Again([]string, []string) {}
