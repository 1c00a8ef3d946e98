package sqlite_test

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/internal/state/sqlite"
	"github.com/mcpd/mcpd/internal/state/statetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAStoreInAFileKeepsTheContract(t *testing.T) {
	files := files{paths: map[state.Store]string{}}
	statetest.Suite{New: files.New, Restart: files.Restart, Crash: files.Crash}.Run(t)
}

// files makes stores in files, and knows which file a store is in.
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

// Crash opens a copy of the files of a store that is still open: what a kill
// leaves behind.
func (f *files) Crash(t testing.TB, s state.Store, o state.Options) state.Store {
	from, to := f.path(s), filepath.Join(t.TempDir(), "state", "state.db")
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		copyFile(t, from+suffix, to+suffix)
	}
	return f.open(t, to, o)
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}
