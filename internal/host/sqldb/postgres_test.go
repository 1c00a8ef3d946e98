package sqldb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const password = postgrestest.Password

// server is a PostgreSQL server of a test.
type server struct{ *postgrestest.Server }

// resolve returns the secrets of the tests.
func resolve(_ context.Context, name string) (string, error) {
	switch {
	case name == "pw":
		return password, nil
	case strings.HasPrefix(name, "host="):
		return name, nil
	}
	return "", errors.New("there is no secret " + name)
}

// grant returns a grant of the server.
func (s *server) grant(write bool, statements ...string) grant.SQL {
	g := grant.SQL{Name: "pg", Driver: grant.PostgreSQL, Write: write, MaxRows: 100, Address: "127.0.0.1:" + s.Port,
		DSN: grant.Value{Parts: []grant.Part{{Literal: "postgres://app:"}, {Secret: "pw"}, {Literal: "@localhost/postgres?sslmode=disable"}}}}
	for i, text := range statements {
		g.Statements = append(g.Statements, grant.Statement{Name: fmt.Sprint("s", i), Query: text})
	}
	return g
}

func TestPostgreSQL(t *testing.T) {
	s := &server{postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))}
	l := newLab(t)
	if got := l.do(s.grant(true, "CREATE TABLE users (id bigint PRIMARY KEY, name text UNIQUE, data bytea)"), "exec", `{"statement":"s0"}`); got != `{"changes":0}` {
		t.Fatal(got)
	}
	if got := l.do(s.grant(true, "INSERT INTO users VALUES (1, 'ann', '\\x00ff'), (2, 'bob', NULL), (9007199254740993, 'hunter2', '')"), "exec", `{"statement":"s0"}`); got != `{"changes":3}` {
		t.Fatal(got)
	}
	t.Run("what is bound is never read as SQL", func(t *testing.T) { boundInPostgres(t, l, s) })
	t.Run("values", func(t *testing.T) { valuesOfPostgres(t, l, s) })
	t.Run("refusals", func(t *testing.T) { refusalsOfPostgres(t, l, s) })
	t.Run("a statement ends with its call", func(t *testing.T) { endsInPostgres(t, l, s) })
	t.Run("a session leaves nothing behind", func(t *testing.T) { forgottenByPostgres(t, l, s) })
	t.Run("connections", func(t *testing.T) { connectionsOfPostgres(t, l, s) })
}

func boundInPostgres(t *testing.T, l *lab, s *server) {
	for _, g := range []grant.SQL{s.grant(false, "SELECT id FROM users WHERE name = :name", "SELECT :v::text AS v"), s.grant(true, "SELECT id FROM users WHERE name = :name", "SELECT :v::text AS v")} {
		for _, text := range hostile() {
			if got := l.do(g, "query", `{"statement":"s0","params":{"name":`+quoted(text)+`}}`); got != `{"columns":["id"],"rows":[]}` {
				t.Errorf("%.40q gives %.200s", text, got)
			}
			want, _ := json.Marshal(map[string]any{"columns": []string{"v"}, "rows": [][]string{{text}}})
			if got := l.do(g, "query", `{"statement":"s1","params":{"v":`+quoted(text)+`}}`); got != string(want) {
				t.Errorf("got %[2].200s for %[1].40q", text, got)
			}
		}
	}
	if got := l.do(s.grant(false, "SELECT count(*) AS n FROM users"), "query", `{"statement":"s0"}`); got != `{"columns":["n"],"rows":[[3]]}` {
		t.Errorf("afterwards there is %s", got)
	}
}

func valuesOfPostgres(t *testing.T, l *lab, s *server) {
	g := s.grant(false,
		"SELECT id, name, data FROM users ORDER BY id",
		"SELECT :a::int AS a, :b::float8 AS b, :c::bool AS c, :d::text AS d, :e::bytea AS e, :f::bigint AS f",
		"SELECT 1.10::numeric AS n, 'NaN'::float8 AS x, '-Infinity'::float4 AS y, '{\"a\": 1}'::jsonb AS j, DATE '2026-01-02' AS d, ARRAY[1,2] AS l, $$:no$$ AS s, NULL AS u",
		"SELECT name FROM users WHERE (:name::text IS NULL OR name = :name) AND id < :below ORDER BY id LIMIT :most")
	for payload, want := range map[string]string{
		`{"statement":"s0"}`: `{"columns":["id","name","data"],"rows":[[1,"ann",{"base64":"AP8="}],[2,"bob",null],["9007199254740993","[secret:x]",{"base64":""}]]}`,
		`{"statement":"s1","params":{"a":7,"b":1.5,"c":true,"d":"é","e":{"base64":"AP8="},"f":{"integer":"9223372036854775807"}}}`: `{"columns":["a","b","c","d","e","f"],"rows":[[7,1.5,true,"é",{"base64":"AP8="},"9223372036854775807"]]}`,
		`{"statement":"s1","params":{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null}}`:                                      `{"columns":["a","b","c","d","e","f"],"rows":[[null,null,null,null,null,null]]}`,
		`{"statement":"s2"}`: `{"columns":["n","x","y","j","d","l","s","u"],"rows":[["1.10","NaN","-Infinity","{\"a\": 1}","2026-01-02","{1,2}",":no",null]]}`,
		`{"statement":"s3","params":{"name":null,"below":9,"most":1}}`:  `{"columns":["name"],"rows":[["ann"]]}`,
		`{"statement":"s3","params":{"name":"bob","below":9,"most":5}}`: `{"columns":["name"],"rows":[["bob"]]}`,
		`{"statement":"s3","params":{"name":"x","below":9,"most":5}}`:   `{"columns":["name"],"rows":[]}`,
	} {
		if got := l.do(g, "query", payload); got != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
}

func refusalsOfPostgres(t *testing.T, l *lab, s *server) {
	reading := s.grant(false, "INSERT INTO users VALUES (7, 'x')", "SELECT set_config('transaction_read_only', 'off', false)", "SELECT 1; SELECT 2", "SELECT :a::int AS a", "SELECT absent FROM users",
		"SELECT 1 AS a, 2 AS a", "SELECT generate_series(1, 101) AS a", "SELECT repeat('x', 3000000) AS a FROM generate_series(1, 2)", "SELECT repeat('x', 30000000) AS a", "COMMIT", "SELECT * FROM users FOR UPDATE",
		"WITH x AS (DELETE FROM users RETURNING id) SELECT * FROM x", "SELECT set_config('default_transaction_read_only', 'off', false)")
	for payload, want := range map[string]string{
		`{"statement":"s0"}`: "DENIED: s0: the grant, or the role of the server, does not allow", `{"statement":"s1"}`: "", `{"statement":"s2"}`: "INVALID: s2: the statement cannot be read",
		`{"statement":"s3","params":{"a":"1; DROP TABLE users"}}`: "INVALID: s3: PostgreSQL cannot run the statement with these values", `{"statement":"s3","params":{"a":1.5}}`: "INVALID: s3: PostgreSQL cannot",
		`{"statement":"s4"}`: `INVALID: s4: PostgreSQL refuses the statement: column "absent" does not exist`, `{"statement":"s5"}`: "INVALID: s5: two columns have the name a", `{"statement":"s6"}`: "TOO_LARGE: s6: there are more than 100 rows",
		`{"statement":"s7"}`: "TOO_LARGE: s7: the rows have more than 4 MiB", `{"statement":"s8"}`: "TOO_LARGE: s8: a row has more than 8 MiB", `{"statement":"s10"}`: "DENIED: s10: the grant, or the role of the server, does not allow", `{"statement":"s11"}`: "DENIED: s11: the grant, or the role of the server, does not allow",
	} {
		if got := l.do(reading, "query", payload); want != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %.200s, want %s", payload, got, want)
		}
		// The error must not enable writes.
		if got := l.do(reading, "query", `{"statement":"s0"}`); !strings.HasPrefix(got, scripting.Denied) {
			t.Errorf("after %s a row is written: %.200s", payload, got)
		}
	}
	writing := s.grant(true, "INSERT INTO users (id, name) VALUES (:id, :name) RETURNING id", "DELETE FROM users WHERE id = :id")
	for _, c := range []struct{ method, payload, want string }{
		{"query", `{"statement":"s0","params":{"id":7,"name":"eve"}}`, `{"columns":["id"],"rows":[[7]]}`},
		{"query", `{"statement":"s0","params":{"id":8,"name":"eve"}}`, "INVALID: s0: a constraint of the database rejects the row"},
		{"exec", `{"statement":"s1","params":{"id":7}}`, `{"changes":1}`},
	} {
		if got := l.do(writing, c.method, c.payload); got != c.want {
			t.Errorf("%s: got %s, want %s", c.payload, got, c.want)
		}
	}
}

func endsInPostgres(t *testing.T, l *lab, s *server) {
	watch := s.grant(false, "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE :what")
	for _, text := range []string{"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) AS endless FROM n", "SELECT pg_sleep(600) AS endless"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if got := l.within(ctx, s.grant(false, text), "query", `{"statement":"s0"}`); got != "TIMEOUT: s0: the database did not respond in time" {
			t.Errorf("got %s", got)
		}
		cancel()
		// The statement is repeated until the server has cancelled it.
		for got := ""; got != `{"columns":["n"],"rows":[[0]]}` && t.Context().Err() == nil; {
			got = l.do(watch, "query", `{"statement":"s0","params":{"what":"%endless FROM%"}}`)
		}
	}
}

func forgottenByPostgres(t *testing.T, l *lab, s *server) {
	g := s.grant(true, "SELECT set_config('app.who', 'ann', false) AS a, pg_advisory_lock(1)::text AS b", "SELECT current_setting('app.who', true) AS a, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS b")
	l.do(g, "query", `{"statement":"s0"}`)
	if got := l.do(g, "query", `{"statement":"s1"}`); got != `{"columns":["a","b"],"rows":[["",0]]}` && got != `{"columns":["a","b"],"rows":[[null,0]]}` {
		t.Errorf("another call finds %s", got)
	}
	if l.broker.Pools()[g.Hash()].Free != 1 {
		t.Errorf("the connection is not reused")
	}
}

func connectionsOfPostgres(t *testing.T, l *lab, s *server) {
	t.Run("in a hostile environment", func(t *testing.T) {
		hostileEnvironment(t)
		if got := l.do(s.grant(false, "SELECT current_user AS u, current_setting('application_name') AS a, current_setting('transaction_read_only') AS r"), "query", `{"statement":"s0"}`); got != `{"columns":["u","a","r"],"rows":[["app","mcpd","on"]]}` {
			t.Errorf("the environment gets in the way: %s", got)
		}
	})
	one := func(g grant.SQL) string { return l.do(g, "query", `{"statement":"s0"}`) }
	whole := s.grant(false, "SELECT 2 AS two")
	whole.Address, whole.DSN = "", grant.Value{Parts: []grant.Part{{Secret: fmt.Sprintf(`host=%s port=%s user=app dbname=postgres password='%s'`, s.Folder, s.Port, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password))}}}
	if got := one(whole); got != `{"columns":["two"],"rows":[[2]]}` {
		t.Errorf("a dsn that is one secret: %s", got)
	}
	bad := s.grant(false, "SELECT 3 AS three")
	bad.DSN.Parts = []grant.Part{{Literal: "postgres://app@localhost/postgres?sslmode=disable"}}
	if got := one(bad); got != "UNAVAILABLE: s0: the database cannot be reached, or rejects the connection" {
		t.Errorf("without a password: %s", got)
	}
	bad.DSN.Parts = []grant.Part{{Literal: "postgres://app:"}, {Secret: "gone"}, {Literal: "@localhost/postgres"}}
	if got := one(bad); got != "UNAVAILABLE: s0: the database cannot be used now" {
		t.Errorf("without a secret: %s", got)
	}
}
