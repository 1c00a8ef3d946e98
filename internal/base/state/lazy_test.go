package state_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/sqlite"
)

func TestStore_sweepsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy := &state.Lazy{}
		store, err := lazy.Open()
		if err != nil {
			t.Fatal(err)
		}
		task, err := store.CreateTask(state.Task{Owner: state.Owner{ID: "a"}, Tool: "t", TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		changes, stop, err := store.WatchTask(task.Owner, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for range changes { // until the task is removed
			t.Error("the task changed")
		}
		if err := lazy.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := lazy.Open(); err == nil {
			t.Error("a closed store was opened")
		}
	})
}

func TestLazy_fallsBackToMemory(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(blocked, "state.db")
	if _, err := (&state.Lazy{File: sqlite.Open, Path: path}).Open(); err == nil {
		t.Error("a file below a file was opened")
	}
	var log bytes.Buffer
	lazy := &state.Lazy{File: sqlite.Open, Path: path, Optional: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := lazy.Open(); err != nil || !strings.Contains(log.String(), "fallback=memory") {
		t.Errorf("%v, log: %s", err, &log)
	}
	if err := lazy.Close(); err != nil {
		t.Error(err)
	}
}

func TestLazy_fileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd", "state.db")
	lazy := &state.Lazy{File: sqlite.Open, Path: path, Optional: true}
	store, err := lazy.Open()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := lazy.Open(); err != nil || again != store {
		t.Errorf("a second store was opened: %v", err)
	}
	if err := errors.Join(store.Sweep(), lazy.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
