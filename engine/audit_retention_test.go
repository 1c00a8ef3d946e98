package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/engine"
)

// Files are removed by size, number and age.
func TestAudit_retention(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	now := time.Now() // the system sets file times, too
	folder := t.TempDir()
	path := filepath.Join(folder, "audit.jsonl")
	run := func(block string) (kept int) {
		s := server(t, engine.Options{
			Files: engine.Files{
				Tools:  files("long.hcl", "tool \"long\" {\n  input \"text\" { type = string }\n  run = \"return 1\"\n}\n"),
				Config: files("mcpd.hcl", auditBlock(path, "  mode = \"strict\"\n"+block+"  capture = [\"long\"]\n")),
			},
			Now: func() time.Time { return now },
		})
		for range 60 {
			wantOutcome(t, s.Execute(t.Context(), toolCall("long", `{"text":"`+strings.Repeat("x", 60<<10)+`"}`)), "1")
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		aside, err := filepath.Glob(filepath.Join(folder, "audit-*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return len(aside)
	}
	if kept := run("  max_size = \"1MiB\"\n  keep = 2\n"); kept != 2 {
		t.Errorf("%d files are kept, want 2", kept)
	}
	now = now.Add(48 * time.Hour)
	if kept := run("  max_size = \"64MiB\"\n  max_age = \"1d\"\n"); kept != 0 {
		t.Errorf("%d expired files are kept", kept)
	}
	if kept := run("  max_size = \"1MiB\"\n"); kept < 3 {
		t.Errorf("%d files are kept without a setting", kept)
	}
}
