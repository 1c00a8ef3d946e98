package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/engine"
)

// TestAudit_retention: by the size of its files and their number,
// and by their age.
func TestAudit_retention(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	now := time.Now() // which the system writes beside files, too
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
			wantSaid(t, s.Execute(t.Context(), calls("long", `{"text":"`+strings.Repeat("x", 60<<10)+`"}`)), "1")
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
		t.Errorf("%d files are kept that are too old", kept)
	}
	if kept := run("  max_size = \"1MiB\"\n"); kept < 3 {
		t.Errorf("%d files are kept where nothing is said of them", kept)
	}
}
