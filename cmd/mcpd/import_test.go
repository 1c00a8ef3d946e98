package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An import reads its files before its question, and the user may save them before the answer.
func TestImport_fileChangesDuringQuestion(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, path string){
		"edited": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("tool \"mine\" {}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			e, err := scenarioEnv(s.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			other, err := readCandidate(e, "mcpd.hcl")
			if err != nil {
				t.Fatal(err)
			}
			tools, err := readCandidate(e, "tools.d/a.hcl")
			if err != nil {
				t.Fatal(err)
			}
			other.after, tools.after = []byte("# new\n"), []byte("# new\n")
			path := filepath.Join(s.dir, "tools.d", "a.hcl")
			change(t, path)
			before, missing := os.ReadFile(path)
			if err := writeAll(e, other, tools); err == nil || !strings.Contains(err.Error(), "tools.d/a.hcl has changed during the import") {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(path); string(after) != string(before) || (err == nil) != (missing == nil) {
				t.Errorf("the file contains %q, %v", after, err)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "mcpd.hcl")); err == nil {
				t.Error("mcpd.hcl was written")
			}
		})
	}
}
