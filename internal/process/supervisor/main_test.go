package supervisor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// programs are what the test's own binary is when it is called by their names,
// with the arguments behind them.
var programs = map[string]func(arguments []string) error{}

// TestMain makes the test's own binary the programs.
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
	// At os.Exit the race detector would wait a second.
	syscall.Exit(code)
}

// self is the path of the test's own binary.
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
