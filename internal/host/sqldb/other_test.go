//go:build !unix

package sqldb_test

import "os/exec"

func handOver(string) error { return nil }

func asOther(c *exec.Cmd) *exec.Cmd { return c }
