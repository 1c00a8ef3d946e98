package worker

import (
	"os"
	"testing"
)

// TestTheProgramIsNoMemoryOfItsProcess, though the system counts what is resident of it
// with what else the process may share with others, which is its own.
func TestTheProgramIsNoMemoryOfItsProcess(t *testing.T) {
	page := int64(os.Getpagesize())
	for statm, want := range map[string]int64{
		"900 50 20 7 0 60 0": 30, "900 50 25 7 0 60 0": 25, "900 50 45 7 0 60 0": 25, "900 50 0 7 0 60 0": 50,
		"": 0, "900 50": 0, "900 x 20": 0, "900 50 x": 0,
	} {
		if got := ownMemory([]byte(statm), 25*page); got != want*page {
			t.Errorf("%q: %d pages and %d bytes, want %d", statm, got/page, got%page, want)
		}
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(path); err != nil || sizeOf(path) != int64(len(file)) || sizeOf(path+".none") != 0 {
		t.Errorf("the program has %d bytes, and is said to have %d: %v", len(file), sizeOf(path), err)
	}
}
