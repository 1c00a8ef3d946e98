//go:build !windows

package audit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Between fork and exec, a child holds a copy of the file, like a duplicate.
func TestLock_childBetweenForkAndExec(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.lock")
	held, err := lock(name)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := syscall.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	child := os.NewFile(uintptr(copied), name)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	pauses := 0
	again, err := lockWith(name, func() {
		if pauses++; pauses == 3 {
			_ = child.Close() // as at exec
		}
	})
	if err != nil || pauses != 3 {
		t.Fatalf("after %d pauses: %v", pauses, err)
	}
	defer again.Close()
	pauses = 0
	if _, err := lockWith(name, func() { pauses++ }); !errors.Is(err, ErrInUse) || pauses != lockAttempts-1 {
		t.Errorf("after %d pauses: %v", pauses, err)
	}
}
