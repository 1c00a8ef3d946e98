package supervisor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// programs are the programs that the test binary runs by name, with the
// arguments after the name.
var programs = map[string]func(arguments []string) error{}

// TestMain runs the programs.
func TestMain(m *testing.M) {
	program := programs[os.Args[0]]
	if program == nil {
		os.Exit(m.Run())
	}
	code := 0
	if err := program(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// os.Exit would wait a second for the race detector.
	syscall.Exit(code)
}

// self is the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program returns one of the programs, by its name and its arguments.
func program(t *testing.T, line string) Program {
	t.Helper()
	return Program{Path: self(t), Argv: strings.Fields(line), Dir: t.TempDir(), MaxOutput: 1 << 20}
}
