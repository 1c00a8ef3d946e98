package peercred_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/mcpd/mcpd/internal/auth/peercred"
)

// TestMayDescend has a child and a grandchild of this process.
func TestMayDescend(t *testing.T) {
	// cat waits for the end of its input, which it would not have in the background.
	c := exec.Command("sh", "-c", "cat <&0 & echo $!; wait")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}()
	var grandchild int
	if _, err := fmt.Fscan(bufio.NewReader(out), &grandchild); err != nil {
		t.Fatal(err)
	}
	own, parent := os.Getpid(), os.Getppid()
	for name, test := range map[string]struct {
		pid, ancestor int
		want          bool
	}{
		"child":             {c.Process.Pid, own, true},
		"grandchild":        {grandchild, own, true},
		"of another child":  {own, c.Process.Pid, false},
		"itself":            {own, own, false},
		"parent":            {parent, own, false},
		"outside namespace": {0, own, false},
		"unknown":           {1 << 30, own, true},
	} {
		if got := peercred.MayDescend(test.pid, test.ancestor); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
