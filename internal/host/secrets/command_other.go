//go:build !unix

package secrets

import "os/exec"

// isolate leaves the command as it is: it is killed alone.
func isolate(*exec.Cmd) {}
