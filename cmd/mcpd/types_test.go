package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linesOf returns a writer and the lines that are written to it.
func linesOf() (io.Writer, *bufio.Scanner) {
	r, w := io.Pipe()
	return w, bufio.NewScanner(r)
}

// awaitLine reads lines up to one with a text.
func awaitLine(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("no line has %q: %v", text, lines.Err())
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
	var out, errs *bufio.Scanner
	e.stdout, out = linesOf()
	e.stderr, errs = linesOf()
	ctx, stop := context.WithCancel(t.Context())
	e.service.signals = func() (context.Context, <-chan os.Signal, func()) { return ctx, nil, stop }
	ended := make(chan int, 1)
	go func() { ended <- run(e, []string{"types", "--watch"}) }()

	types := filepath.Join(dir, ".mcpd", "types.d.ts")
	written := func(input string) {
		t.Helper()
		for content := ""; !strings.Contains(content, input+": string"); { // a half saved file has no input
			awaitLine(t, out, "wrote .mcpd/types.d.ts")
			text, err := os.ReadFile(types)
			if err != nil {
				t.Fatal(err)
			}
			content = string(text)
		}
	}
	written("first")
	awaitLine(t, out, "wrote tsconfig.json")
	save("second")
	written("second")
	save("in valid")
	awaitLine(t, errs, "t.hcl:3")
	save("third")
	go func() { // the rest of the error
		for errs.Scan() {
		}
	}()
	written("third")
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
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
