//go:build !unix

package postgrestest

import "os/exec"

func handOver(string) error { return nil }

func asOther(c *exec.Cmd) *exec.Cmd { return c }
