package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func TestDatabases_testBlocks(t *testing.T) {
	server, _ := loadCopy(t, "databases")
	passes(t, server, 7)
}

// query returns the value of a call, or the message of its error.
func query(t *testing.T, server *engine.Server, tool string, arguments map[string]any) string {
	t.Helper()
	encoded, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result := server.Execute(t.Context(), call.Request{Kind: call.Tools, Name: tool, Arguments: encoded})
	if result.Err != nil {
		return "error: " + result.Err.Message
	}
	return string(result.Value)
}

// hostileNames are names that would end a statement they were pasted into.
var hostileNames = []string{
	"users); DROP TABLE users; --", "users); ATTACH DATABASE 'x' AS y; --", "users') UNION SELECT value, '', 0 FROM secrets --", "'", "\"", "sqlite_master; --",
	"users\x00", "\u202euser", ":table", "?1", "$table", "", strings.Repeat("users", 100_000),
}

func TestTableName_quoted(t *testing.T) {
	server, dir := loadCopy(t, "databases")
	before, err := os.ReadFile(filepath.Join(dir, "data", "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `"Table 'users' has 3 columns: id (INTEGER, PK), username (TEXT), role (TEXT)."`
	for _, path := range []string{"shop.db", filepath.Join(dir, "data", "shop.db")} {
		if got := query(t, server, "inspect_table_schema", map[string]any{"db_path": path, "table_name": "users"}); got != want {
			t.Errorf("got %s", got)
		}
	}
	tooLong := query(t, server, "inspect_table_schema", map[string]any{"db_path": "shop.db", "table_name": strings.Repeat("x", 201)})
	if !strings.Contains(tooLong, "200") {
		t.Errorf("a name of 201 characters: %s", tooLong)
	}
	for _, name := range hostileNames {
		got := query(t, server, "inspect_table_schema", map[string]any{"db_path": "shop.db", "table_name": name})
		if !strings.HasSuffix(got, " does not exist.") && got != "error: only databases in the data directory can be inspected" && got != tooLong {
			t.Errorf("%.50q: got %.200s", name, got)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "data", "shop.db"))
	left, _ := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || !bytes.Equal(before, after) || len(left) != 1 {
		t.Errorf("the database was replaced, or %d files are left", len(left))
	}
}

func TestDatabasePaths_confined(t *testing.T) {
	server, dir := loadCopy(t, "databases")
	evil := filepath.Join(dir, "data-evil")
	for link, to := range map[string]string{"evil.db": filepath.Join(evil, "shop.db"), "evil": evil, "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, "data", link)); err != nil {
			t.Skip("this system cannot create links: ", err)
		}
	}
	if err := os.Link(filepath.Join(evil, "shop.db"), filepath.Join(dir, "data", "hard.db")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"../data-evil/shop.db", filepath.Join(evil, "shop.db"), "evil.db", "evil/shop.db", "up/data-evil/shop.db", "hard.db", "file:shop.db?mode=rwc.db",
		"shop.db?mode=rw", ":memory:", "/etc/passwd", "shop.db\x00.db",
	} {
		got := query(t, server, "inspect_table_schema", map[string]any{"db_path": path, "table_name": "secrets"})
		if got != "error: only databases in the data directory can be inspected" && got != "error: there is no database "+path {
			t.Errorf("%q: got %s", path, got)
		}
	}
}

func TestSearch_filters(t *testing.T) {
	server, _ := loadCopy(t, "databases")
	for _, c := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"query": "ann"}, `{"customers":[{"id":1,"name":"Ann Archer","status":"active"},{"id":4,"name":"Anna Ash","status":"pending"}]}`},
		{map[string]any{"query": "ann", "limit": 1}, `{"customers":[{"id":1,"name":"Ann Archer","status":"active"}]}`},
		{map[string]any{"query": "", "filters": map[string]any{"status": "inactive"}}, `{"customers":[{"id":2,"name":"Bob Baker","status":"inactive"}]}`},
		{map[string]any{"query": "", "filters": map[string]any{"status": "active", "created_after": "2026-02-28"}}, `{"customers":[{"id":3,"name":"Cleo 100% Cotton","status":"active"}]}`},
		{map[string]any{"query": "%"}, `{"customers":[{"id":3,"name":"Cleo 100% Cotton","status":"active"}]}`},
		{map[string]any{"query": "' OR '1'='1"}, `{"customers":[]}`},
		{map[string]any{"query": "x') UNION SELECT id, username, role FROM users --"}, `{"customers":[]}`},
	} {
		if got := query(t, server, "search_database", c.arguments); got != c.want {
			t.Errorf("%v: got %s, want %s", c.arguments, got, c.want)
		}
	}
}
