package sqldb

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/host/secrets"
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

// dsnDriver is a driver that needs the first secret of a DSN.
type dsnDriver struct{ Driver }

func (dsnDriver) Connect(ctx context.Context, g grant.SQL, resolve secrets.Resolver) (Conn, error) {
	_, err := resolve(ctx, g.DSN.Parts[0].Secret)
	return nil, err
}

func (dsnDriver) Explain(error) (code, text string) { return "", "" }

func (dsnDriver) Close() error { return nil }

func TestDo_missingSecret(t *testing.T) {
	var log strings.Builder
	b := New(Options{
		Drivers: map[string]Driver{grant.PostgreSQL: dsnDriver{}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Resolve: func(context.Context, string) (string, error) { return "", errors.New("the variable is not set") },
	})
	t.Cleanup(func() { _ = b.Close() })
	d := Compile(grant.SQL{
		Name: "shop", Driver: grant.PostgreSQL, DSN: grant.Value{Parts: []grant.Part{{Secret: secrets.JoinKey("dsn", "2")}}},
		Statements: []grant.Statement{{Name: "one", Query: "SELECT 1"}},
	})
	if _, err := b.Do(t.Context(), d, "query", []byte(`{"statement":"one"}`)); err == nil {
		t.Error("the statement ran")
	}
	if !strings.Contains(log.String(), `level=WARN msg="read secret of grant" grant=shop secret=dsn error="the variable is not set"`) {
		t.Errorf("log: %s", log.String())
	}
}

func TestCompile_invalidStatement(t *testing.T) {
	d := Compile(grant.SQL{Name: "shop", Driver: grant.SQLite, Statements: []grant.Statement{{Name: "bad", Query: "SELECT 'x"}}})
	if _, err := d.Parse("query", []byte(`{"statement":"bad"}`)); err == nil || err.Error() != `INVALID: bad: the statement cannot be read` {
		t.Errorf("got %v", err)
	}
}

// PoolState is the state of a pool for tests.
type PoolState struct {
	Free, Leases int
	Retire       func()
}

// Pools returns the pools by grant hash.
func (b *Broker) Pools() map[[32]byte]PoolState {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools := map[[32]byte]PoolState{}
	for k, p := range b.pools {
		pools[k] = PoolState{Free: len(p.free), Leases: p.leases, Retire: func() { b.closeIdle(k, p) }}
	}
	return pools
}
