package sqlite

import (
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sqlite3 "modernc.org/sqlite/lib"
)

// database creates a file with rows.
func database(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b%c#?.db")
	db, err := sql.Open("sqlite", address(Options{Path: path}))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range append([]string{"CREATE TABLE t (a, b)"}, statements...) {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return path
}

func open(t *testing.T, o Options) *Conn {
	t.Helper()
	o.MaxValue = 1 << 20
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// rows runs a statement and returns all values.
func rows(c *Conn, text string, values ...any) ([]any, error) {
	s, err := c.Prepare(text)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i, v := range values {
		if err := s.Bind(i, v); err != nil {
			return nil, err
		}
	}
	var all []any
	for {
		more, err := s.Step()
		if !more {
			return all, err
		}
		for i := range s.Columns() {
			all = append(all, s.Value(i))
		}
	}
}

func TestBind_values(t *testing.T) {
	c := open(t, Options{Path: database(t)})
	want := []any{nil, int64(math.MinInt64), 1.5, "é\x00'; DROP TABLE t; --", "", []byte{0, 255}, []byte{}}
	got, err := rows(c, "SELECT ?, ?, ?, ?, ?, ?, ?", want...)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "

func TestInterrupt(t *testing.T) {
	c := open(t, Options{Path: database(t)})
	for _, text := range []string{endless + "count(*) FROM n", endless + "i FROM n WHERE i < 2 OR i < 0"} {
		begun, ended := make(chan struct{}), make(chan error)
		go func() {
			close(begun)
			_, err := rows(c, text)
			ended <- err
		}()
		<-begun
		c.Interrupt()
		var failure *Error
		if err := <-ended; !errors.As(err, &failure) || failure.Code != sqlite3.SQLITE_INTERRUPT {
			t.Errorf("%s ends with %v", text, err)
		}
		c.Resume()
	}
	if got, err := rows(c, "SELECT 1"); err != nil || !slices.Equal(got, []any{int64(1)}) {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

func TestStmt_outOfMemory(t *testing.T) {
	c := open(t, Options{Path: database(t)})
	_, err := rows(c, endless+"i, zeroblob(100000) FROM n ORDER BY -i")
	var failure *Error
	if !errors.As(err, &failure) || !failure.OutOfMemory {
		t.Errorf("got %v", err)
	}
}

func TestAuthorize(t *testing.T) {
	path := database(t, "INSERT INTO t VALUES (1, 2)", "CREATE INDEX i ON t (a)", "CREATE VIEW v AS SELECT load_extension('x')")
	reading, writing := open(t, Options{Path: path}), open(t, Options{Path: path, Write: true})
	both := []string{
		"ATTACH 'x' AS y", "DETACH main", "PRAGMA query_only = OFF", "PRAGMA journal_mode = WAL", "PRAGMA table_info(t)x", "PRAGMA database_list",
		"SELECT * FROM pragma_database_list", "SELECT * FROM pragma_compile_options", "SELECT load_extension('x')", "SELECT * FROM v",
		"CREATE TABLE u (a)", "CREATE TEMP TABLE u (a)", "DROP TABLE t", "ALTER TABLE t RENAME TO u", "CREATE INDEX j ON t (a)", "VACUUM", "VACUUM INTO 'x'",
		"REINDEX", "ANALYZE", "BEGIN", "SAVEPOINT s", "COMMIT", "ROLLBACK", "CREATE VIRTUAL TABLE f USING fts5(a)", "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
		"UPDATE sqlite_master SET sql = 'x'", "DELETE FROM sqlite_schema", "SELECT 1; SELECT 2", "SELECT 1; -- and more", "", " -- nothing", ";", "SELECT 1\x00",
		"SELECT \"no such column\" FROM t", "SELECT a LIKE '" + strings.Repeat("%a", 200) + "' FROM t", "SELECT zeroblob(2000000)", "SELECT 1 -- " + strings.Repeat("x", maxStatement),
	}
	for _, text := range both {
		for _, c := range []*Conn{reading, writing} {
			if got, err := rows(c, text); err == nil {
				t.Errorf("%s gives %v", text, got)
			}
		}
	}
	for _, text := range []string{"INSERT INTO t VALUES (3, 4)", "UPDATE t SET a = 9", "DELETE FROM t", "INSERT INTO t VALUES (5, 6) RETURNING a"} {
		if got, err := rows(reading, text); err == nil {
			t.Errorf("%s gives %v", text, got)
		}
		if _, err := rows(writing, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := rows(reading, "SELECT name FROM pragma_table_info(?)", "t"); err != nil || !slices.Equal(got, []any{"a", "b"}) {
		t.Errorf("the columns of t: %v, %v", got, err)
	}
}

func TestParameters(t *testing.T) {
	c := open(t, Options{Path: database(t)})
	s, err := c.Prepare("SELECT :a, :b, :a, a FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Parameters(); !slices.Equal(got, []string{":a", ":b"}) || !s.ReadsOnly() {
		t.Errorf("the parameters are %v", got)
	}
}
