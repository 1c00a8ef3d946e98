package audit_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/audit"
)

// TestALogStandsWhereThisProcessMayWrite looks at folders that exist and that would be made.
func TestALogStandsWhereThisProcessMayWrite(t *testing.T) {
	here := t.TempDir()
	for _, path := range []string{filepath.Join(here, "a.jsonl"), filepath.Join(here, "deep", "er", "a.jsonl")} {
		if err := audit.Check(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Nobody writes there, whatever rights a process has.
	for _, path := range []string{"/proc/1/a.jsonl", "/proc/1/deep/er/a.jsonl"} {
		if err := audit.Check(path); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
