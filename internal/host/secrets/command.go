package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/process/procgroup"
)

// patience is how long output is waited for when a program has ended.
const patience = time.Second

// variablePrefix begins the variables of the environment that give values to
// variable blocks, which may be sensitive.
const variablePrefix = "MCPD_VAR_"

// errTooLong ends a command that prints more than any value may hold.
var errTooLong = errors.New("it prints too much")

// runCommand runs a program and returns what it prints. What it writes to
// standard error is dropped: it may repeat the value.
func runCommand(ctx context.Context, argv, without []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(without, name) || strings.HasPrefix(name, variablePrefix)
	})
	cmd.SysProcAttr = procgroup.Attr()
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process) }
	cmd.WaitDelay = patience
	var out capped
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.full:
		return nil, errTooLong
	case errors.As(err, &exit):
		return nil, fmt.Errorf("it failed with exit code %d", exit.ExitCode())
	case err != nil:
		return nil, err
	}
	return out.taken.Bytes(), nil
}

// capped takes no more than a value with its line break. It does not embed
// the buffer, whose ReadFrom knows no bound.
type capped struct {
	taken bytes.Buffer
	full  bool
}

// Write fails when there is no room for all of p.
func (c *capped) Write(p []byte) (int, error) {
	if c.taken.Len()+len(p) > MaxValue+len("\r\n") {
		c.full = true
		return 0, errTooLong
	}
	return c.taken.Write(p)
}
