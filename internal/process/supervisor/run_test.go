package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// environment is the output of the program tell: its own environment.
type environment struct {
	Argv, Env []string
	Dir       string
	Input     int
}

func init() {
	programs["tell"] = func([]string) error {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		in, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(environment{Argv: os.Args, Env: os.Environ(), Dir: dir, Input: len(in)})
	}
	programs["fail"] = func([]string) error {
		_, _ = os.Stdout.WriteString("out")
		_, _ = os.Stderr.WriteString("err")
		syscall.Exit(7)
		return nil
	}
	programs["flood"] = func([]string) error {
		w := bufio.NewWriter(os.Stdout)
		for {
			if _, err := w.WriteString("more and more\n"); err != nil {
				return err
			}
		}
	}
}

// commands are the commands that run programs: directly, and through a supervisor.
func commands(t *testing.T) map[string][]string {
	all := map[string][]string{"directly": nil}
	if supervising {
		all["supervised"] = []string{self(t), "supervise"}
	}
	return all
}

func TestRun_environment(t *testing.T) {
	t.Setenv("OF_THE_CALLER", "x")
	for way, command := range commands(t) {
		p := program(t, "tell")
		p.Argv = append(p.Argv, "a b", "", "$(id)", "*", "'", "\xff", strings.Repeat("x", 100_000))
		p.Env = []string{"LANG=C", "TOKEN=a=b\n\xff"}
		got, err := Run(t.Context(), command, p)
		if err != nil || got.Code != 0 {
			t.Fatalf("%s: %v, %d, %s", way, err, got.Code, got.Stderr)
		}
		var found environment
		if err := json.Unmarshal(got.Stdout, &found); err != nil {
			t.Fatal(err)
		}
		want := environment{Argv: slices.Clone(p.Argv), Env: []string{"LANG=C", "TOKEN=a=b\n�"}, Dir: p.Dir}
		want.Argv[6] = "�" // as JSON encodes it
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s (-want +got)\n%s", way, diff)
		}
	}
}

func TestRun_exitCode(t *testing.T) {
	for way, command := range commands(t) {
		got, err := Run(t.Context(), command, program(t, "fail"))
		if diff := cmp.Diff(Result{Code: 7, Stdout: []byte("out"), Stderr: []byte("err")}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", way, err, diff)
		}
	}
}

func TestRun_missingProgram(t *testing.T) {
	for way, command := range commands(t) {
		p := program(t, "tell")
		p.Path = "/does/not/exist"
		if _, err := Run(t.Context(), command, p); err == nil {
			t.Errorf("%s: no error", way)
		}
	}
}

func TestRun_outputLimit(t *testing.T) {
	for way, command := range commands(t) {
		if _, err := Run(t.Context(), command, program(t, "flood")); !errors.Is(err, ErrOutputLimit) {
			t.Errorf("%s: %v", way, err)
		}
	}
}

func TestRun_contextDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for way, command := range commands(t) {
		if _, err := Run(ctx, command, program(t, "tell")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", way, err)
		}
	}
}

func TestRun_invalidSupervisor(t *testing.T) {
	if !supervising {
		t.Skip("SKIPPED: no supervisors on this system")
	}
	if _, err := Run(t.Context(), []string{self(t), "fail"}, program(t, "tell")); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}
