package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

func TestWrite_replaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"old", "new"} {
		if err := atomicfile.Write(path, []byte(content), 0o640, nil); err != nil {
			t.Fatal(err)
		}
		check(t, path, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWrite_keepsFileOnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	if err := atomicfile.Write(path, []byte("new"), 0o600, func(*os.File) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	check(t, path, "old")
}

// check checks the content of path, and that it is the only file in its directory.
func check(t *testing.T, path, content string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("content %q, %v; want %q", got, err, content)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("directory entries %v, %v", entries, err)
	}
}
