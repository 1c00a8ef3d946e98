package sqldb

import (
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestQuery_allocations(t *testing.T) {
	d := Compile(grant.SQL{
		Name: "files", Driver: grant.SQLite, Path: "/data", ResolvedPath: "/data", PathFromCall: true, Glob: []string{"**/*.sqlite", "**/*.db"}, MaxRows: 2,
		Statements: []grant.Statement{{Name: "by_name", Query: "SELECT id, name FROM users WHERE name = :name AND city = :city AND id > :id"}},
	})
	payload := []byte(`{"path":"a/b.db","statement":"by_name","params":{"name":"ann","city":"Rome","id":1}}`)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := d.Parse("query", payload); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 55 {
		t.Errorf("%v allocations, more than to read three values takes", allocs)
	}
}

func TestWithSecrets_pool(t *testing.T) {
	d := Compile(grant.SQL{Name: "shop", Driver: grant.PostgreSQL, DSN: grant.Value{Parts: []grant.Part{{Secret: "dsn"}}}})
	if got := d.WithSecrets(map[string]string{"other": "other@2"}); got.key != d.key {
		t.Error("another secret changes the key of the connections")
	}
	got := d.WithSecrets(map[string]string{"dsn": "dsn@2"})
	if got.key == d.key || got.key != got.SQL.Hash() || got.DSN.Parts[0].Secret != "dsn@2" {
		t.Errorf("the definition of the secret is %q, the pool key %x", got.DSN.Parts[0].Secret, got.key)
	}
}

func TestCompile_invalidStatement(t *testing.T) {
	d := Compile(grant.SQL{Name: "shop", Driver: grant.SQLite, Statements: []grant.Statement{{Name: "bad", Query: "SELECT 'x"}}})
	if _, err := d.Parse("query", []byte(`{"statement":"bad"}`)); err == nil || err.Error() != `INVALID: bad: the statement cannot be read` {
		t.Errorf("got %v", err)
	}
}
