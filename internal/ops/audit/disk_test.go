package audit

import (
	"os"
	"testing"
)

// TestWhatIsSyncedIsAskedOfTheDisk, which refuses what it cannot keep.
func TestWhatIsSyncedIsAskedOfTheDisk(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := (osFile{w}).sync(); err == nil {
		t.Error("a pipe is said to be on the disk")
	}
}
