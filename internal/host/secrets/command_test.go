//go:build unix

package secrets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCommand_noShell(t *testing.T) {
	got, err := runCommand(t.Context(), []string{"printf", "%s|%s", "$HOME; echo", "*"}, nil)
	if string(got) != "$HOME; echo|*" || err != nil {
		t.Errorf("got %q and %v", got, err)
	}
}

func TestCommand_failed(t *testing.T) {
	_, err := runCommand(t.Context(), []string{"sh", "-c", "echo hunter22; echo hunter22 >&2; exit 3"}, nil)
	if want := "it failed with exit code 3"; text(err) != want {
		t.Errorf("error is %q, want %q", text(err), want)
	}
}

func TestCommand_endlessOutput(t *testing.T) {
	_, err := runCommand(t.Context(), []string{"yes"}, nil)
	if !errors.Is(err, errTooLong) {
		t.Errorf("error is %v", err)
	}
}

func TestCommand_missing(t *testing.T) {
	if _, err := runCommand(t.Context(), []string{"/no/such/program"}, nil); err == nil {
		t.Error("it ran")
	}
}

func TestCommand_children(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s := New(Options{})
	// The child keeps the output open; if it were not killed, Wait would take the full timeout.
	s.Set([]Definition{{Name: "s", Command: []string{"sh", "-c", "sleep 3600 & echo started; wait"}}})
	_, err := s.Resolve(ctx, "s")
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "started") {
		t.Errorf("error is %v", err)
	}
}

func TestCommand_environment(t *testing.T) {
	for _, name := range []string{"MCPD_TEST_OTHER", "MCPD_VAR_STAGE", "MCPD_TEST_LANG"} {
		t.Setenv(name, "hunter22")
	}
	s := New(Options{})
	s.Set([]Definition{{Name: "s", Command: []string{"env"}}, {Name: "other", Env: "MCPD_TEST_OTHER"}})
	got, err := s.Resolve(t.Context(), "s")
	if err != nil || strings.Contains(got, "MCPD_TEST_OTHER") || strings.Contains(got, "MCPD_VAR_STAGE") || !strings.Contains(got, "MCPD_TEST_LANG=hunter22") {
		t.Errorf("it sees %q, %v", got, err)
	}
}
