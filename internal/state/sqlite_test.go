package state

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

var (
	someone = Owner{ID: "someone"}
	soon    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fixed   = Options{Now: func() time.Time { return soon.Add(-time.Minute) }}
)

// opened returns a store in a new file.
func opened(t testing.TB) (*store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new folder", "100% state?#.db")
	s, err := openFile(path, fixed, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

// reopened closes a store and opens it again.
func reopened(t testing.TB, s *store, path string) *store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openFile(path, fixed, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// pragma sets something of the connection of a store.
func pragma(t testing.TB, s *store, text string) {
	t.Helper()
	if _, err := s.rows.(*sqliteRows).db.Exec("PRAGMA " + text); err != nil {
		t.Fatal(err)
	}
}

func wantPragma(t testing.TB, s *store, text, want string) {
	t.Helper()
	var got string
	if err := s.rows.(*sqliteRows).db.QueryRow("PRAGMA " + text).Scan(&got); err != nil || got != want {
		t.Errorf("%s is %q, %v; want %q", text, got, err, want)
	}
}

func TestEveryWriteReachesTheDisk(t *testing.T) {
	s, _ := opened(t)
	wantPragma(t, s, "journal_mode", "wal")
	wantPragma(t, s, "synchronous", "2")
	wantPragma(t, s, "locking_mode", "exclusive")
}

func TestAFileGoesThroughTheStepsThatItLacks(t *testing.T) {
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
		t.Fatal("a step that fails has happened")
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
func begun(t testing.TB, s *store) Task {
	t.Helper()
	if c, err := s.Claim(context.Background(), someone, Nonce{1}, soon); err != nil || !c.Won {
		t.Fatal(c, err)
	}
	task, err := s.CreateTask(Task{Owner: someone, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestAFullDiskRefusesAndLosesNothing(t *testing.T) {
	s, path := opened(t)
	task := begun(t, s)
	pragma(t, s, "max_page_count = 1")
	large := make([]byte, 1<<20)
	for what, err := range map[string]error{
		"a journal":   s.PutJournal(someone, Nonce{2}, soon, large),
		"an answer":   s.Finish(Nonce{1}, large),
		"a result":    update(s, task, large),
		"the journal": s.PutJournal(someone, Nonce{2}, soon, large),
	} {
		var full *FullError
		if !errors.As(err, &full) || full.Err == nil || full.Wait < time.Second {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	if got, err := s.Task(someone, task.ID); err != nil || got.Status != Working || len(got.Result) > 0 {
		t.Errorf("the task is %s with %d bytes, %v", got.Status, len(got.Result), err)
	}
	if _, err := s.Claim(t.Context(), someone, Nonce{1}, soon); !errors.Is(err, ErrUnkept) {
		t.Errorf("a claim whose answer had no room: %v", err)
	}
	s = reopened(t, s, path)
	if _, err := s.Claim(t.Context(), someone, Nonce{1}, soon); !errors.Is(err, ErrUnkept) {
		t.Errorf("a claim whose answer had no room, after a restart: %v", err)
	}
	if _, err := s.Journal(Nonce{2}); !errors.Is(err, ErrLost) {
		t.Errorf("a journal that had no room: %v", err)
	}
	if err := s.PutJournal(someone, Nonce{2}, soon, large); err != nil {
		t.Errorf("a journal when there is room again: %v", err)
	}
}

func TestRecordsArePutAllOrNone(t *testing.T) {
	s, _ := opened(t)
	pragma(t, s, "max_page_count = 1")
	small := newRecord(entry{kind: journalKind, id: "small"}, nil)
	large := newRecord(entry{kind: journalKind, id: "large"}, make([]byte, 1<<20))
	if err := s.rows.put(small, large); !isDiskFull(err) {
		t.Fatalf("records on a full disk: %v", err)
	}
	if err := s.rows.each(func(e entry) { t.Errorf("the record %s is there", e.id) }); err != nil {
		t.Error(err)
	}
}

func update(s *store, task Task, result []byte) error {
	_, err := s.UpdateTask(task.Owner, task.ID, func(t *Task) error {
		t.Status, t.Result = Completed, result
		return nil
	})
	return err
}

func TestADiskThatCannotBeWrittenChangesNothing(t *testing.T) {
	s, _ := opened(t)
	task := begun(t, s)
	pragma(t, s, "query_only = 1")
	_, claimErr := s.Claim(t.Context(), someone, Nonce{2}, soon)
	_, keyErr := s.SealingKey()
	for what, err := range map[string]error{"a claim": claimErr, "a key": keyErr, "a result": update(s, task, nil)} {
		if full := new(FullError); err == nil || errors.As(err, &full) {
			t.Errorf("%s on a disk that cannot be written: %v", what, err)
		}
	}
	if got, err := s.Task(someone, task.ID); err != nil || got.Status != Working {
		t.Errorf("the task is %s, %v", got.Status, err)
	}
	pragma(t, s, "query_only = 0")
	if c, err := s.Claim(t.Context(), someone, Nonce{2}, soon); err != nil || !c.Won {
		t.Errorf("a claim when the disk is well again: %v, %v", c.Won, err)
	}
	if _, err := s.SealingKey(); err != nil {
		t.Errorf("a key when the disk is well again: %v", err)
	}
	if err := update(s, task, nil); err != nil {
		t.Errorf("a result when the disk is well again: %v", err)
	}
}

func TestWhatCannotBeRemovedIsRemovedLater(t *testing.T) {
	now := soon.Add(-time.Minute)
	s, path := opened(t)
	s.now = func() time.Time { return now }
	if err := s.PutJournal(someone, Nonce{1}, soon, []byte("journal")); err != nil {
		t.Fatal(err)
	}
	now = soon
	pragma(t, s, "query_only = 1")
	if s.Sweep() == nil {
		t.Error("a disk that cannot be written is swept")
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
		t.Errorf("%d records are left, %v", left, err)
	}
}
