package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// programs are the programs that the test binary runs by name. Each prints its
// report, if it has entered a sandbox, and its findings.
var programs = map[string]func() (finding, error){}

// finding is the output of a program.
type finding struct {
	Report Report         `json:"report"`
	Errnos map[string]int `json:"errnos"`
}

// TestMain runs the programs.
func TestMain(m *testing.M) {
	program := programs[os.Args[0]]
	if program == nil {
		os.Exit(m.Run())
	}
	f, err := program()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// command returns the command of a program.
func command(t *testing.T, program string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: path, Args: []string{program}, Env: []string{}}
}

// runProgram runs a command and returns its output.
func runProgram(t *testing.T, cmd *exec.Cmd) (f finding) {
	t.Helper()
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%.4000s", cmd.Args[0], err, words.Bytes())
	}
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[0], err, out.Bytes())
	}
	return f
}
