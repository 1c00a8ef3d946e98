package cputest

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

// The race detector links functions of the runtime that no other program has.
func TestRace_linked(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := append([]byte("runtime."), "racefuncenter"...) // not a constant, which the program would contain
	if linked := bytes.Contains(program, name); Race() != linked {
		t.Errorf("Race() = %v, but the program has the race detector: %v", Race(), linked)
	}
	if Race() && !Cgo() && runtime.GOOS == "linux" {
		t.Error("Cgo() = false with the race detector")
	}
}
