package execs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// programs are the programs that the test binary can be, by first argument; the rest are their
// arguments.
var programs = map[string]func(arguments []string){
	"tell": func(arguments []string) {
		for _, a := range arguments {
			fmt.Println(base64.StdEncoding.EncodeToString([]byte(a)))
		}
	},
	"env":   func([]string) { fmt.Print(strings.Join(os.Environ(), "\n")) },
	"bytes": func([]string) { fmt.Print("a\xff"); fmt.Fprint(os.Stderr, "é"); syscall.Exit(3) },
	"flood": func([]string) {
		for {
			fmt.Println("more and more")
		}
	},
	"write": func([]string) {
		dir, err := os.Getwd()
		entries, listed := os.ReadDir(".")
		if err := errors.Join(err, listed, os.WriteFile("left", []byte("x"), 0o600)); err != nil {
			panic(err)
		}
		fmt.Print(dir, " ", len(entries))
	},
	// meet connects to the test by a pipe, and continues when the test closes it.
	"meet": func(arguments []string) {
		pipe, err := os.OpenFile(arguments[0], os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(pipe, os.Getpid())
		_, _ = os.ReadFile(arguments[0] + ".gate")
	},
}

// TestMain runs a program if the first argument names one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		programs[os.Args[1]](os.Args[2:])
		// os.Exit would wait a second for the race detector.
		syscall.Exit(0)
	}
	os.Exit(m.Run())
}

// grantOf grants one of the programs, with these arguments.
func grantOf(t *testing.T, argv ...string) grant.Exec {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return grant.Exec{Name: "p", Path: path, ResolvedPath: path, Argv: argv, MaxOutput: 1 << 20, Concurrency: 4}
}

func broker() *Broker {
	return &Broker{
		Logger: slog.New(slog.DiscardHandler),
		Redact: func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "[secret]")) },
		Resolve: func(_ context.Context, name string) (string, error) {
			if name != "token" {
				return "", errors.New("no such secret")
			}
			return "hunter2", nil
		},
	}
}

// told is the result of exec.run for a script.
type told struct {
	Code                               int
	Stdout, Stderr, Stdout64, Stderr64 string
}

// run runs a program for a script, and returns the result, or the error code.
func run(t *testing.T, b *Broker, g grant.Exec, params map[string]string) (told, string) {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"grant": g.Name, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.Do(t.Context(), Compile(g), payload)
	var refusal *scripting.HostError
	if errors.As(err, &refusal) {
		return told{}, refusal.Code
	}
	var got told
	if err := errors.Join(err, json.Unmarshal(answer, &got)); err != nil {
		t.Fatal(err)
	}
	return got, ""
}
