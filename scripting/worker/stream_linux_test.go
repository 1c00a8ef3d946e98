package worker

import (
	"os/exec"
	"testing"
)

// TestWhoReadsIsWokenWithoutWaiting, however much there is to read already.
func TestWhoReadsIsWokenWithoutWaiting(t *testing.T) {
	for _, full := range []int{0, 1, 4096, 64 << 10} {
		ours, theirs, err := connect(&exec.Cmd{})
		if err != nil {
			t.Fatal(err)
		}
		stdout := theirs[1].(interface{ Write([]byte) (int, error) })
		if _, err := stdout.Write(make([]byte, full)); err != nil {
			t.Fatal(err)
		}
		ours.wake() // the test ends here if it waits
		if n, err := ours.Read(make([]byte, 128<<10)); n == 0 || err != nil {
			t.Errorf("behind %d bytes it reads %d bytes, %v", full, n, err)
		}
		_ = ours.Close()
		for _, end := range theirs {
			_ = end.Close()
		}
	}
}
