package sqldb_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/host/sqldb/postgres"
	"github.com/mcpd/mcpd/internal/host/sqldb/sqlite"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a broker, and a directory with a database.
type lab struct {
	*testing.T
	broker *sqldb.Broker
	root   string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, root: root, broker: sqldb.New(sqldb.Options{
		Drivers: map[string]sqldb.Driver{grant.SQLite: &sqlite.Driver{}, grant.PostgreSQL: postgres.Driver{}},
		Redact:  func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "[secret:x]")) }, Logger: slog.New(slog.DiscardHandler),
		Resolve: resolve,
	})}
	t.Cleanup(func() {
		if err := l.broker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	l.make("shop.db")
	return l
}

const people = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE, data BLOB);
	INSERT INTO users VALUES (1, 'ann', x'00ff'), (2, 'bob', NULL), (9007199254740993, 'hunter2', 1.5)`

// make creates a database in the directory.
func (l *lab) make(name string) string {
	l.Helper()
	path := filepath.Join(l.root, name)
	l.must(os.MkdirAll(filepath.Dir(path), 0o755))
	db, err := sql.Open("sqlite", path)
	l.must(err)
	_, err = db.Exec(people)
	l.must(err)
	l.must(db.Close())
	return path
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// fixed returns a grant of one database.
func (l *lab) fixed(write bool, statements ...string) grant.SQL {
	path := filepath.Join(l.root, "shop.db")
	g := grant.SQL{Name: "shop", Driver: grant.SQLite, Path: path, ResolvedPath: path, Write: write, MaxRows: 100}
	for _, s := range append([]string{"SELECT id, name FROM users WHERE name = :name", "SELECT :v AS v, typeof(:v) AS t"}, statements...) {
		g.Statements = append(g.Statements, grant.Statement{Name: "s" + string(rune('0'+len(g.Statements))), Query: s})
	}
	return g
}

// chosen returns a grant of the databases in the directory.
func (l *lab) chosen() grant.SQL {
	g := l.fixed(false, "SELECT count(*) AS n FROM users")
	g.Path, g.ResolvedPath, g.PathFromCall, g.Glob = l.root, l.root, true, []string{"**/*.db", "one.sqlite"}
	return g
}

// do returns an answer, or the code and the message of an error.
func (l *lab) do(g grant.SQL, method, payload string) string {
	l.Helper()
	return l.within(l.Context(), g, method, payload)
}

func (l *lab) within(ctx context.Context, g grant.SQL, method, payload string) string {
	l.Helper()
	answer, err := l.broker.Do(ctx, sqldb.Compile(g), method, []byte(payload))
	var refusal *scripting.HostError
	switch {
	case errors.As(err, &refusal):
		return refusal.Code + ": " + refusal.Message
	case err != nil:
		l.Fatalf("%s: %v is no refusal", payload, err)
	}
	return string(answer)
}

// hostile returns texts for SQL injection.
func hostile() []string {
	return []string{
		"users); DROP TABLE users; --", "'; DROP TABLE users; --", "' OR '1'='1", "\" OR \"\"=\"", "users\"; ATTACH 'x' AS y; --", "1; PRAGMA query_only=OFF",
		"/*", "*/", "--", "\\'; DROP TABLE users; --", "%", "_", "$$", "$1", ":name", "?1", "@x", "]", "`", "$tag$", "E'\\''", "ʼ; DROP TABLE users; --", "＇ OR 1=1",
		"\u202e'", "🙂'", "NULL", "null", "0x1", "1e999", "NaN", "-0", strings.Repeat("'", 1000), strings.Repeat("x", sqldb.MaxText), "load_extension('x')", "{\"base64\":\"\"}",
	}
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

func TestQuery_injection(t *testing.T) {
	l := newLab(t)
	for _, text := range hostile() {
		for _, g := range []grant.SQL{l.fixed(false), l.fixed(true)} {
			if got := l.do(g, "query", `{"statement":"s0","params":{"name":`+quoted(text)+`}}`); got != `{"columns":["id","name"],"rows":[]}` {
				t.Errorf("%.40q gives %.200s", text, got)
			}
			want, err := json.Marshal(map[string]any{"columns": []string{"v", "t"}, "rows": [][]string{{text, "text"}}})
			if got := l.do(g, "query", `{"statement":"s1","params":{"v":`+quoted(text)+`}}`); got != string(want) || err != nil {
				t.Errorf("got %[2].200s for %[1].40q", text, got)
			}
		}
	}
	if got := l.do(l.fixed(false, "SELECT count(*) AS n FROM users"), "query", `{"statement":"s2"}`); got != `{"columns":["n"],"rows":[[3]]}` {
		t.Errorf("afterwards there is %s", got)
	}
}

func TestQuery_notGranted(t *testing.T) {
	l := newLab(t)
	for _, text := range append(hostile(), "", "S0", "s0 ", "s9", "SELECT 1", "SELECT * FROM users", "s0; SELECT 1", "s0\x00") {
		if got := l.do(l.fixed(true), "query", `{"statement":`+quoted(text)+`}`); !strings.HasPrefix(got, scripting.NotGranted) {
			t.Errorf("%.40q gives %s", text, got)
		}
	}
}

func TestQuery_values(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct{ value, want string }{
		{`null`, `[null,"null"]`}, {`true`, `[1,"integer"]`}, {`false`, `[0,"integer"]`}, {`7`, `[7,"integer"]`}, {`7.0`, `[7,"integer"]`}, {`-0`, `[0,"integer"]`},
		{`1.5`, `[1.5,"real"]`}, {`1e300`, `[1e+300,"real"]`}, {`9007199254740991`, `[9007199254740991,"integer"]`}, {`9007199254740992`, `[9007199254740992,"real"]`},
		{`{"integer":"9223372036854775807"}`, `["9223372036854775807","integer"]`}, {`{"integer":"-9007199254740992"}`, `["-9007199254740992","integer"]`},
		{`{"base64":"AP8="}`, `[{"base64":"AP8="},"blob"]`}, {`{"base64":""}`, `[{"base64":""},"blob"]`}, {`"hunter2"`, `["[secret:x]","text"]`},
	} {
		if got, want := l.do(l.fixed(false), "query", `{"statement":"s1","params":{"v":`+c.value+`}}`), `{"columns":["v","t"],"rows":[`+c.want+`]}`; got != want {
			t.Errorf("%s: got %s, want %s", c.value, got, want)
		}
	}
	for _, value := range []string{`[]`, `{}`, `{"integer":"9223372036854775808"}`, `{"integer":"1e3"}`, `{"integer":"1","base64":""}`, `{"base64":"*"}`, `"a\u0000b"`, quoted(strings.Repeat("x", sqldb.MaxText+1)), `[1]`} {
		if got := l.do(l.fixed(false), "query", `{"statement":"s1","params":{"v":`+value+`}}`); !strings.HasPrefix(got, "INVALID: s1: the parameter :v ") {
			t.Errorf("%.40s gives %.200s", value, got)
		}
	}
	for payload, want := range map[string]string{
		`{"statement":"s1"}`: "INVALID: s1: the parameter :v has no value; pass null for no value", `{"statement":"s1","params":{"v":1,"w":2}}`: "INVALID: s1: the statement has no parameter :w",
		`[]`: "INVALID: the operation is malformed", `{"statement":"s1","path":"shop.db","params":{"v":1}}`: "INVALID: s1: use open only with a grant that has a root",
		`{"statement":"s1","params":{"v":NaN}}`: "INVALID: the operation is malformed",
	} {
		if got := l.do(l.fixed(false), "query", payload); got != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
}

func TestQuery_limits(t *testing.T) {
	l := newLab(t)
	const counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
	g := l.fixed(false, counted+"i FROM n LIMIT :most", counted+"zeroblob(500000) AS z FROM n LIMIT 99", "SELECT 1 AS a, 2 AS a", "SELECT name, data, id FROM users ORDER BY id", "SELECT zeroblob(1048577) AS z",
		"SELECT absent FROM users", "SELECT 9e999 AS a, -9e999 AS b")
	for payload, want := range map[string]string{
		`{"statement":"s2","params":{"most":101}}`: "TOO_LARGE: s2: there are more than 100 rows (max_rows); write a LIMIT, or raise max_rows",
		`{"statement":"s3"}`:                       "TOO_LARGE: s3: the rows have more than 4 MiB; select fewer rows or columns",
		`{"statement":"s4"}`:                       "INVALID: s4: two columns have the name a; rename one with AS",
		`{"statement":"s5"}`:                       `{"columns":["name","data","id"],"rows":[["ann",{"base64":"AP8="},1],["bob",null,2],["[secret:x]",1.5,"9007199254740993"]]}`,
		`{"statement":"s6"}`:                       "TOO_LARGE: s6: a text or blob has more than 1 MiB",
		`{"statement":"s7"}`:                       "INVALID: s7: SQLite refuses the statement: no such column: absent",
		`{"statement":"s8"}`:                       `{"columns":["a","b"],"rows":[["Infinity","-Infinity"]]}`,
	} {
		if got := l.do(g, "query", payload); got != want {
			t.Errorf("%s: got %.200s, want %s", payload, got, want)
		}
	}
	if got := l.do(g, "query", `{"statement":"s2","params":{"most":100}}`); strings.Count(got, "[") != 102 {
		t.Errorf("of 100 rows there are %s", got)
	}
}

func TestQuery_cancel(t *testing.T) {
	l := newLab(t)
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
	for _, g := range []grant.SQL{l.fixed(false, endless+"count(*) AS n FROM n"), l.fixed(false, endless+"i FROM n WHERE i < 0"), l.fixed(true, "DELETE FROM users WHERE id IN ("+endless+"i FROM n)")} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if got := l.within(ctx, g, "query", `{"statement":"s2"}`); got != "TIMEOUT: s2: the database did not respond in time" {
			t.Errorf("got %s", got)
		}
		cancel()
		if got := l.do(g, "query", `{"statement":"s0","params":{"name":"ann"}}`); got != `{"columns":["id","name"],"rows":[[1,"ann"]]}` {
			t.Errorf("afterwards: %s", got)
		}
		if got := l.within(ctx, g, "query", `{"statement":"s0","params":{"name":"ann"}}`); !strings.HasPrefix(got, scripting.TimedOut) && !strings.HasPrefix(got, scripting.Unavailable) {
			t.Errorf("a call that has ended gets %s", got)
		}
	}
}

func TestExec_writeGrant(t *testing.T) {
	l := newLab(t)
	statements := []string{"INSERT INTO users (name) VALUES (:name)", "UPDATE users SET data = NULL", "INSERT INTO users (name) VALUES (:name) RETURNING name"}
	for payload, want := range map[string]string{
		`{"statement":"s2","params":{"name":"eve"}}`: "NOT_GRANTED: s2: the grant does not allow changes",
	} {
		if got := l.do(l.fixed(false, statements...), "exec", payload); got != want {
			t.Errorf("%s: got %s", payload, got)
		}
	}
	if got := l.do(l.fixed(false, statements...), "query", `{"statement":"s2","params":{"name":"eve"}}`); got != "DENIED: s2: the grant does not allow the statement" {
		t.Errorf("a query that writes: %s", got)
	}
	for _, c := range []struct{ method, payload, want string }{
		{"exec", `{"statement":"s2","params":{"name":"eve"}}`, `{"changes":1}`},
		{"exec", `{"statement":"s2","params":{"name":"eve"}}`, "INVALID: s2: a constraint of the database rejects the row"},
		{"exec", `{"statement":"s3"}`, `{"changes":4}`},
		{"query", `{"statement":"s4","params":{"name":"dan"}}`, `{"columns":["name"],"rows":[["dan"]]}`},
		{"exec", `{"statement":"s0","params":{"name":"dan"}}`, `{"changes":0}`},
		{"vacuum", `{"statement":"s0"}`, "NOT_GRANTED: databases have no such operation"},
		{"open", `{"path":"shop.db"}`, "INVALID: use open only with a grant that has a root"},
	} {
		if got := l.do(l.fixed(true, statements...), c.method, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.payload, got, c.want)
		}
	}
}

func TestQueryFile(t *testing.T) {
	l := newLab(t)
	l.make("deep/down/other.db")
	l.make("one.sqlite")
	l.make("two.sqlite")
	outside := filepath.Join(t.TempDir(), "outside.db")
	l.must(os.WriteFile(outside, []byte("secret"), 0o600))
	l.must(os.WriteFile(filepath.Join(l.root, "text.db"), []byte(strings.Repeat("no database ", 100)), 0o600))
	l.must(os.WriteFile(filepath.Join(l.root, "busy.db"), nil, 0o600))
	l.must(os.WriteFile(filepath.Join(l.root, "busy.db-wal"), []byte("x"), 0o600))
	l.must(os.WriteFile(filepath.Join(l.root, "empty.db"), nil, 0o600))
	l.must(os.Symlink(filepath.Join(l.root, "shop.db"), filepath.Join(l.root, "link.db")))
	l.must(os.Symlink(outside, filepath.Join(l.root, "out.db")))
	l.must(os.Symlink(filepath.Dir(outside), filepath.Join(l.root, "out")))
	l.must(os.Link(filepath.Join(l.root, "two.sqlite"), filepath.Join(l.root, "hard.db")))
	l.must(os.Mkdir(filepath.Join(l.root, "folder.db"), 0o755))
	before := l.listing()
	for _, path := range []string{"shop.db", "deep/down/other.db", "one.sqlite", "./shop.db", filepath.Join(l.root, "shop.db")} {
		if got := l.do(l.chosen(), "open", `{"path":`+quoted(path)+`}`); got != "{}" {
			t.Errorf("open %s: %s", path, got)
		}
		if got := l.do(l.chosen(), "query", `{"path":`+quoted(path)+`,"statement":"s2"}`); got != `{"columns":["n"],"rows":[[3]]}` {
			t.Errorf("query %s: %s", path, got)
		}
	}
	for path, want := range map[string]string{
		"two.sqlite": scripting.NotGranted, "shop.db?mode=rwc": scripting.NotGranted, "file:shop.db": scripting.NotFound, ":memory:": scripting.NotGranted, "": scripting.Invalid, ".": scripting.NotGranted,
		"none.db": scripting.NotFound, "text.db": scripting.Invalid, "busy.db": scripting.Unavailable, "link.db": scripting.Denied, "out.db": scripting.Denied, "out/outside.db": scripting.Denied,
		"hard.db": scripting.Denied, "folder.db": scripting.Denied, "../shop.db": scripting.OutsideRoot, "deep/../shop.db": scripting.OutsideRoot, outside: scripting.OutsideRoot, l.root + "-evil/shop.db": scripting.OutsideRoot,
		"shop.db\x00": scripting.Invalid, "shop.db ": scripting.Invalid, "deep\\down\\other.db": scripting.Invalid, "C:shop.db": scripting.Invalid, "\u202eshop.db": scripting.Invalid, "shop.db/x.db": scripting.NotFound,
		"ticket1": scripting.NotGranted, strings.Repeat("a/", 70) + "x.db": scripting.Invalid,
	} {
		for _, payload := range []string{`{"path":` + quoted(path) + `}`, `{"path":` + quoted(path) + `,"statement":"s2"}`} {
			method := map[bool]string{true: "query", false: "open"}[strings.Contains(payload, "s2")]
			if got := l.do(l.chosen(), method, payload); !strings.HasPrefix(got, want+": ") || strings.Contains(got, "secret") {
				t.Errorf("%s %.60q: got %s, want %s", method, path, got, want)
			}
		}
	}
	if got := l.do(l.chosen(), "query", `{"path":"empty.db","statement":"s2"}`); got != "INVALID: s2: SQLite refuses the statement: no such table: users" {
		t.Errorf("an empty file: %s", got)
	}
	if diff := cmp.Diff(before, l.listing()); diff != "" {
		t.Errorf("directory (-before +after)\n%s", diff)
	}
}

// listing returns the files in the directory, with their sizes.
func (l *lab) listing() map[string]int64 {
	found := map[string]int64{}
	l.must(filepath.WalkDir(l.root, func(path string, d os.DirEntry, err error) error {
		if info, err := d.Info(); err == nil {
			found[path] = info.Size()
		}
		return err
	}))
	return found
}

func TestQueryFile_wal(t *testing.T) {
	l := newLab(t)
	db, err := sql.Open("sqlite", filepath.Join(l.root, "shop.db"))
	l.must(err)
	_, err = db.Exec("PRAGMA journal_mode = WAL; INSERT INTO users (name) VALUES ('eve')")
	l.must(err)
	if got := l.do(l.chosen(), "query", `{"path":"shop.db","statement":"s2"}`); !strings.HasPrefix(got, scripting.Unavailable+": shop.db: another program uses the database") {
		t.Errorf("while it is open: %s", got)
	}
	l.must(db.Close())
	before := l.listing()
	if got := l.do(l.chosen(), "query", `{"path":"shop.db","statement":"s2"}`); got != `{"columns":["n"],"rows":[[4]]}` {
		t.Errorf("afterwards: %s", got)
	}
	if diff := cmp.Diff(before, l.listing()); diff != "" {
		t.Errorf("directory (-before +after)\n%s", diff)
	}
}

func TestPool_perGrant(t *testing.T) {
	l := newLab(t)
	for range 3 {
		l.do(l.fixed(false), "query", `{"statement":"s0","params":{"name":"ann"}}`)
		l.do(l.fixed(true), "query", `{"statement":"s0","params":{"name":"ann"}}`)
	}
	pools := l.broker.Pools()
	if len(pools) != 2 {
		t.Errorf("there are %d pools", len(pools))
	}
	for _, p := range pools {
		if p.Free != 1 || p.Leases != 0 {
			t.Errorf("a pool has %d connections and %d leases", p.Free, p.Leases)
		}
		p.Retire()
	}
	if n := len(l.broker.Pools()); n != 0 {
		t.Errorf("%d unused pools remain", n)
	}
}
