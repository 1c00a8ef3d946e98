package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

var (
	someone = state.Owner{ID: "someone"}
	soon    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fixed   = state.Options{Now: func() time.Time { return soon.Add(-time.Minute) }}
)

// store is a store with its rows.
type store struct {
	state.Store
	rows *rows
}

// opened returns a store in a new file.
func opened(t testing.TB) (*store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new folder", "100% state?#.db")
	return openedAt(t, path, fixed), path
}

func openedAt(t testing.TB, path string, o state.Options) *store {
	t.Helper()
	s, r, err := open(path, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &store{s, r}
}

// reopened closes a store and opens it again.
func reopened(t testing.TB, s *store, path string) *store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openedAt(t, path, fixed)
}

// pragma sets a pragma on the connection of a store.
func pragma(t testing.TB, s *store, text string) {
	t.Helper()
	if _, err := s.rows.db.Exec("PRAGMA " + text); err != nil {
		t.Fatal(err)
	}
}

func wantPragma(t testing.TB, s *store, text, want string) {
	t.Helper()
	var got string
	if err := s.rows.db.QueryRow("PRAGMA " + text).Scan(&got); err != nil || got != want {
		t.Errorf("%s is %q, %v; want %q", text, got, err, want)
	}
}

func TestStore_durableWrites(t *testing.T) {
	s, _ := opened(t)
	wantPragma(t, s, "journal_mode", "wal")
	wantPragma(t, s, "synchronous", "2")
	wantPragma(t, s, "locking_mode", "exclusive")
}

func TestOpen_migrations(t *testing.T) {
	s, path := opened(t)
	if _, err := s.SealingKey(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", source(path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	const tables = 2
	added := append(append([]string(nil), schema...), "CREATE TABLE more (x)")
	if err := migrate(db, append(added, "CREATE TABLE more (y)")); err == nil {
		t.Fatal("a failed step was applied")
	}
	wantTables(t, db, tables, len(schema))
	for range 2 {
		if err := migrate(db, added); err != nil {
			t.Fatal(err)
		}
		wantTables(t, db, tables+1, len(schema)+1)
	}
}

func wantTables(t testing.TB, db *sql.DB, tables, version int) {
	t.Helper()
	var gotTables, gotVersion int
	err := errors.Join(
		db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").Scan(&gotTables),
		db.QueryRow("PRAGMA user_version").Scan(&gotVersion))
	if err != nil || gotTables != tables || gotVersion != version {
		t.Fatalf("%d tables at version %d, %v; want %d at %d", gotTables, gotVersion, err, tables, version)
	}
}

// begun wins a claim and starts a task.
func begun(t testing.TB, s *store) state.Task {
	t.Helper()
	if c, err := s.Claim(context.Background(), someone, state.Nonce{1}, soon); err != nil || !c.Won {
		t.Fatal(c, err)
	}
	task, err := s.CreateTask(state.Task{Owner: someone, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestStore_fullDisk(t *testing.T) {
	s, path := opened(t)
	task := begun(t, s)
	pragma(t, s, "max_page_count = 1")
	large := make([]byte, 1<<20)
	for what, err := range map[string]error{
		"a journal":   s.PutJournal(someone, state.Nonce{2}, soon, large),
		"an answer":   s.Finish(state.Nonce{1}, large),
		"a result":    update(s, task, large),
		"the journal": s.PutJournal(someone, state.Nonce{2}, soon, large),
	} {
		var full *state.FullError
		if !errors.As(err, &full) || full.Err == nil || full.Wait < time.Second {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	if got, err := s.Task(someone, task.ID); err != nil || got.Status != state.Working || len(got.Result) > 0 {
		t.Errorf("task %s with %d bytes, %v", got.Status, len(got.Result), err)
	}
	if _, err := s.Claim(t.Context(), someone, state.Nonce{1}, soon); !errors.Is(err, state.ErrNotStored) {
		t.Errorf("claim with an answer that did not fit: %v", err)
	}
	s = reopened(t, s, path)
	if _, err := s.Claim(t.Context(), someone, state.Nonce{1}, soon); !errors.Is(err, state.ErrNotStored) {
		t.Errorf("claim with an answer that did not fit, after a restart: %v", err)
	}
	if _, err := s.Journal(state.Nonce{2}); !errors.Is(err, state.ErrLost) {
		t.Errorf("journal that did not fit: %v", err)
	}
	if err := s.PutJournal(someone, state.Nonce{2}, soon, large); err != nil {
		t.Errorf("journal with free capacity: %v", err)
	}
}

func TestPut_atomic(t *testing.T) {
	s, _ := opened(t)
	pragma(t, s, "max_page_count = 1")
	small := state.Record{Entry: state.Entry{Kind: 2, ID: "small"}}
	large := state.Record{Entry: state.Entry{Kind: 2, ID: "large"}, Data: make([]byte, 1<<20)}
	if err := s.rows.Put(small, large); !s.rows.IsFull(err) {
		t.Fatalf("records on a full disk: %v", err)
	}
	if err := s.rows.Each(func(e state.Entry) { t.Errorf("record %s exists", e.ID) }); err != nil {
		t.Error(err)
	}
}

func update(s *store, task state.Task, result []byte) error {
	_, err := s.UpdateTask(task.Owner, task.ID, func(t *state.Task) error {
		t.Status, t.Result = state.Completed, result
		return nil
	})
	return err
}

func TestStore_readOnlyDisk(t *testing.T) {
	s, _ := opened(t)
	task := begun(t, s)
	pragma(t, s, "query_only = 1")
	_, claimErr := s.Claim(t.Context(), someone, state.Nonce{2}, soon)
	_, keyErr := s.SealingKey()
	for what, err := range map[string]error{"a claim": claimErr, "a key": keyErr, "a result": update(s, task, nil)} {
		if full := new(state.FullError); err == nil || errors.As(err, &full) {
			t.Errorf("%s on a read-only disk: %v", what, err)
		}
	}
	if got, err := s.Task(someone, task.ID); err != nil || got.Status != state.Working {
		t.Errorf("task %s, %v", got.Status, err)
	}
	pragma(t, s, "query_only = 0")
	if c, err := s.Claim(t.Context(), someone, state.Nonce{2}, soon); err != nil || !c.Won {
		t.Errorf("claim after recovery: %v, %v", c.Won, err)
	}
	if _, err := s.SealingKey(); err != nil {
		t.Errorf("key after recovery: %v", err)
	}
	if err := update(s, task, nil); err != nil {
		t.Errorf("result after recovery: %v", err)
	}
}

func TestSweep_retries(t *testing.T) {
	now := soon.Add(-time.Minute)
	path := filepath.Join(t.TempDir(), "state", "state.db")
	s := openedAt(t, path, state.Options{Now: func() time.Time { return now }})
	if err := s.PutJournal(someone, state.Nonce{1}, soon, []byte("journal")); err != nil {
		t.Fatal(err)
	}
	now = soon
	pragma(t, s, "query_only = 1")
	if s.Sweep() == nil {
		t.Error("a read-only disk was swept")
	}
	pragma(t, s, "query_only = 0")
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	db, err := sql.Open("sqlite", source(path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	left := -1
	if err := db.QueryRow("SELECT count(*) FROM records").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d records remain, %v", left, err)
	}
}

// BenchmarkClaim wins and finishes one claim after the other.
func BenchmarkClaim(b *testing.B) {
	ever := state.Limits{Count: 1 << 30, Bytes: 1 << 60, OwnerCount: 1 << 30, OwnerBytes: 1 << 60}
	b.Run("memory", func(b *testing.B) { benchClaim(b, state.NewMemory(state.Options{Claims: ever})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{Claims: ever}, 0)
		if err != nil {
			b.Fatal(err)
		}
		benchClaim(b, s)
	})
}

func benchClaim(b *testing.B, s state.Store) {
	b.Cleanup(func() { s.Close() })
	expires := time.Now().Add(time.Minute)
	answer := make([]byte, 200)
	var nonce state.Nonce
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		binary.BigEndian.PutUint64(nonce[:], n)
		if c, err := s.Claim(b.Context(), someone, nonce, expires); err != nil || !c.Won {
			b.Fatal(c.Won, err)
		}
		if err := s.Finish(nonce, answer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPair writes pairs, one after the other.
func BenchmarkPair(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchPair(b, state.NewMemory(state.Options{})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		benchPair(b, s)
	})
}

func benchPair(b *testing.B, s state.Store) {
	b.Cleanup(func() { s.Close() })
	value := make([]byte, 200)
	room := state.Room{Keys: 1000, Bytes: 10 << 20}
	change := func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{Value: value}, nil }
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if err := s.ChangePair("space", strconv.Itoa(n%1000), room, change); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTask reads a task in a file, like a polling client.
func BenchmarkTask(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	task, err := s.CreateTask(state.Task{Owner: someone, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Task(someone, task.ID); err != nil {
			b.Fatal(err)
		}
	}
}
