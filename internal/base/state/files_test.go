package state_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/sqlite"
	"github.com/mcpd/mcpd/internal/base/state/statetest"
)

func TestSQLite_contract(t *testing.T) {
	files := files{paths: map[state.Store]string{}}
	statetest.Suite{New: files.New, Restart: files.Restart, Crash: files.Crash}.Run(t)
}

// files creates stores in files, and maps stores to files.
type files struct {
	mu    sync.Mutex
	paths map[state.Store]string
}

func (f *files) open(t testing.TB, path string, o state.Options) state.Store {
	t.Helper()
	s, err := sqlite.Open(path, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paths[s] = path
	return s
}

func (f *files) path(s state.Store) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[s]
}

func (f *files) New(t testing.TB, o state.Options) state.Store {
	return f.open(t, filepath.Join(t.TempDir(), "state", "state.db"), o)
}

func (f *files) Restart(t testing.TB, s state.Store, o state.Options) state.Store {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return f.open(t, f.path(s), o)
}

// Crash opens a copy of the files of an open store, as after a kill.
func (f *files) Crash(t testing.TB, s state.Store, o state.Options) state.Store {
	from, to := f.path(s), filepath.Join(t.TempDir(), "state", "state.db")
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(from + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return f.open(t, to, o)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory_contract(t *testing.T) {
	statetest.Suite{New: func(_ testing.TB, o state.Options) state.Store { return state.NewMemory(o) }}.Run(t)
}
