package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// awaitText waits until a file contains a text.
func awaitText(t *testing.T, name, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		content, _ := os.ReadFile(name)
		if strings.Contains(string(content), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has no %q:\n%s", name, text, content)
		}
	}
}

// A file with an error keeps the old types.
func TestTypes_watch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tools.d", "t.hcl")
	save := func(input string) {
		t.Helper()
		content := "tool \"t\" {\n  description = \"Does nothing.\"\n  input \"" + input + "\" { type = string }\n  run = \"return 1;\"\n}\n"
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	save("first")
	e, err := scenarioEnv(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs lockedBuffer
	e.stdout, e.stderr = &out, &errs
	ctx, stop := context.WithCancel(t.Context())
	e.service.signals = func() (context.Context, <-chan os.Signal, func()) { return ctx, nil, stop }
	ended := make(chan int, 1)
	go func() { ended <- run(e, []string{"types", "--watch"}) }()

	types := filepath.Join(dir, ".mcpd", "types.d.ts")
	awaitText(t, types, "first: string")
	save("second")
	awaitText(t, types, "second: string")
	save("in valid")
	for deadline := time.Now().Add(patience); !strings.Contains(errs.String(), "t.hcl:3"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no error was printed: %s", errs.String())
		}
	}
	save("third")
	awaitText(t, types, "third: string")
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

func TestTypes_linkedDirectory(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, ".mcpd")); err != nil {
		t.Skip("SKIPPED: this system has no links")
	}
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := inProcess(t, dir, nil, "types")
	written, err := os.ReadDir(elsewhere)
	if code != exitFindings || !strings.Contains(stderr, ".mcpd is a link") || err != nil || len(written) > 0 {
		t.Errorf("exit code %d, %v, %d files: %s", code, err, len(written), stderr)
	}
}
