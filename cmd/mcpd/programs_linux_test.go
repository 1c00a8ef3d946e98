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

// A canceled call returns although the first process is still starting.
func TestPrograms_canceledWhileStarting(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	e := processEnv()
	e.process.executable, e.process.arg0 = filepath.Join(t.TempDir(), "mcpd"), "mcpd"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// The first process waits until the test writes. None of them works.
	if err := os.WriteFile(e.process.executable, []byte("#!/bin/sh\nif [ -p '"+pipe+"' ]; then read line <'"+pipe+"'; rm '"+pipe+"'; fi\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPrograms(e, executorInline, slog.New(slog.DiscardHandler)).(*codeExecutor)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := p.Run(ctx, scripting.Call{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled call returned %v", err)
		}
	}
	if w := p.Workers(); w != (scripting.Workers{}) {
		t.Errorf("processes: %+v", w)
	}
	if err := os.WriteFile(pipe, []byte("go\n"), 0); err != nil { // opens when it is read
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), scripting.Call{}, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the call without a process returned %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), scripting.Call{}, nil); !errors.Is(err, errProgramsClosed) {
		t.Errorf("the call after Close returned %v", err)
	}
}
