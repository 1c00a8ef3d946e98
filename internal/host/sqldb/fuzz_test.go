package sqldb_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/host/sqldb/sqlite"
	"github.com/mcpd/mcpd/internal/language/sqltext"
)

// FuzzParameters checks that our lexer agrees with SQLite on parameters and on single
// statements.
func FuzzParameters(f *testing.F) {
	for _, text := range append(hostile()[:30], "SELECT :a, ':b', \"c\", [d:e], `f`, 1.5e3, x'00' -- :g\n, :h FROM users /* :i */ WHERE a::b", "SELECT :a1;", "SELECT :a:b", "SELECT 1:a", "SELECT :a.b",
		"SELECT 1e:a", "SELECT :a'b'", "SELECT 'a':b", "SELECT \"id\" FROM [users] WHERE id=:id;--", "SELECT :a/**/:b", "SELECT a->':b' FROM users", "SELECT :\u00e9", "SELECT 1_000, 0x1F:g") {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "x.db")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(people)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := sqltext.Parse(text, sqltext.SQLite)
		if err != nil {
			return
		}
		c, err := sqlite.Open(sqlite.Options{Path: path, MaxValue: sqldb.MaxText})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := c.Prepare(parsed.Text)
		if errors.Is(err, sqlite.ErrNotSingleStatement) {
			t.Fatalf("%q is not one statement to SQLite", text)
		}
		if err != nil {
			return
		}
		defer s.Close()
		var want []string
		for _, name := range parsed.Parameters {
			want = append(want, ":"+name)
		}
		if got := s.Parameters(); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%q has %q, and %q to SQLite", text, want, got)
		}
	})
}
