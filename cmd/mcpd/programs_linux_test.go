package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// TestAProgramWaitsForProcessesNoLongerThanItMay: a call that has ended goes while the first
// process is still on its way.
func TestAProgramWaitsForProcessesNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	e := processEnv()
	e.process.executable, e.process.arg0 = filepath.Join(t.TempDir(), "mcpd"), "mcpd"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// The first one waits until somebody writes. None is of any use.
	if err := os.WriteFile(e.process.executable, []byte("#!/bin/sh\nif [ -p '"+pipe+"' ]; then read line <'"+pipe+"'; rm '"+pipe+"'; fi\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPrograms(e, executorInline, slog.New(slog.DiscardHandler)).(*programs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := p.Run(ctx, scripting.Call{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a program that has ended ends with %v", err)
		}
	}
	if w := p.Workers(); w != (scripting.Workers{}) {
		t.Errorf("the processes are %+v", w)
	}
	if err := os.WriteFile(pipe, []byte("go\n"), 0); err != nil { // opens when it is read
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), scripting.Call{}, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a program that no process runs ends with %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), scripting.Call{}, nil); !errors.Is(err, errProgramsClosed) {
		t.Errorf("a program behind the end ends with %v", err)
	}
}
