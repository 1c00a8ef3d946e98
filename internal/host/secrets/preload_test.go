package secrets

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
)

func TestPreload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(value string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	variable, commands := "env-first", 0
	s := New(Options{
		LookupEnv: func(name string) (string, bool) { return variable, name == "TOKEN" },
		RunCommand: func(context.Context, []string, []string) ([]byte, error) {
			commands++
			return []byte("command-first"), nil
		},
	})
	defs := []Definition{{Name: "e", Env: "TOKEN"}, {Name: "f", File: path}, {Name: "c", Command: []string{"vault"}}, {Name: "gone", Env: "GONE"}}
	shows := func(text, want string) {
		t.Helper()
		if got := s.Redact(text); got != want {
			t.Errorf("%q shows as %q, want %q", text, got, want)
		}
		if got := string(s.RedactBytes([]byte(text))); got != want {
			t.Errorf("the bytes of %q show as %q, want %q", text, got, want)
		}
		if got := string(s.RedactJSON([]byte(`"` + text + `"`))); got != `"`+want+`"` {
			t.Errorf("%q in JSON shows as %s, want %q", text, got, want)
		}
	}
	write("file-first")
	s.Set(defs)
	shows("env-first file-first command-first", "[secret:e] [secret:f] command-first")
	if commands != 0 {
		t.Error("a command ran for an unused secret")
	}

	// Resolve reads the current value, which is redacted, too.
	write("file-second")
	if value, err := s.Resolve(t.Context(), "f"); value != "file-second" || err != nil {
		t.Errorf("a file that changed before its first use is %q, %v", value, err)
	}
	if _, err := s.Resolve(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	shows("file-first file-second command-first", "[secret:f] [secret:f] [secret:c]")

	// A reload reads the current value, and old values stay redacted.
	write("file-third")
	variable = "env-third"
	s.Set(defs)
	shows("env-third file-third env-first file-first", "[secret:e] [secret:f] [secret:e] [secret:f]")
}

func TestPreload_unreadable(t *testing.T) {
	reads := 0
	s := New(Options{ReadFile: func(string) ([]byte, error) { reads++; return nil, errors.New("no") }})
	s.Set([]Definition{{Name: "f", File: "/run/gone"}})
	for range 3 {
		if got := s.Redact("text"); got != "text" {
			t.Errorf("got %q", got)
		}
	}
	if reads != 1 {
		t.Errorf("the file was read %d times, want once for each load", reads)
	}
	if _, err := s.Resolve(t.Context(), "f"); err == nil {
		t.Error("the error is not reported")
	}
}

func TestPreload_concurrent(t *testing.T) {
	const loads, readers = 20, 8
	value := func(i int) string { return "value-of-load-" + string(rune('a'+i)) }
	var mu sync.Mutex
	now := 0
	s := New(Options{LookupEnv: func(string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		return value(now), true
	}})
	for i := range loads {
		mu.Lock()
		now = i
		mu.Unlock()
		s.Set([]Definition{{Name: "s", Env: "V"}})
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if got := s.Redact(value(i)); got != "[secret:s]" {
					t.Errorf("after load %d: %s", i, got)
				}
			})
		}
		all.Wait()
	}
}

// Its value is redacted once it has been read.
func TestPreload_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := New(Options{
			LookupEnv: func(string) (string, bool) { return "env-first", true },
			ReadFile:  func(string) ([]byte, error) { <-hangs; return []byte("file-late"), nil },
		})
		s.Set([]Definition{{Name: "f", File: "/nowhere/token"}, {Name: "e", Env: "TOKEN"}})
		if got := s.Redact("env-first file-late"); got != "[secret:e] file-late" {
			t.Errorf("it shows as %q", got)
		}
		close(hangs)
		synctest.Wait()
		if got := s.Redact("env-first file-late"); got != "[secret:e] [secret:f]" {
			t.Errorf("it shows as %q in the end", got)
		}
	})
}

func TestPreload_pipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip("SKIPPED: no pipe can be made here: ", err)
	}
	s := New(Options{})
	s.Set([]Definition{{Name: "s", File: path}})
	if got := s.Redact("text"); got != "text" {
		t.Errorf("got %q", got)
	}
}
