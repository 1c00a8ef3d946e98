//go:build unix

package secrets

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestPreload_pipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("SKIPPED: no pipe can be made here: ", err)
	}
	s := New(Options{})
	s.Set([]Definition{{Name: "s", File: path}})
	if got := s.Redact("text"); got != "text" {
		t.Errorf("got %q", got)
	}
}
