package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestMocks_sql(t *testing.T) {
	l := newLab(t)
	statements := []grant.Statement{{Name: "by_name", Query: "SELECT id, name FROM users WHERE name = :name"}, {Name: "add", Query: "INSERT INTO users (name) VALUES (:name)"}, {Name: "bad", Query: "SELECT 1"}, {Name: "nested", Query: "SELECT 1"}}
	l.Grant(host.NewGrants(grant.Set{SQL: []grant.SQL{
		{Name: "shop", Driver: grant.SQLite, Path: "/data/shop.db", Write: true, MaxRows: 2, Statements: statements},
		{Name: "files", Driver: grant.SQLite, Path: "/data", PathFromCall: true, Glob: []string{"*.db"}, MaxRows: 2, Statements: statements},
	}}))
	l.Mocks = host.NewMocks([]host.Mock{
		{Object: "sql.shop", Request: "by_name", Body: []byte(`[{"id":1,"name":"ann"},{"name":null,"id":2.5}]`)},
		{Object: "sql.shop", Request: "add", Body: []byte(`{"changes":1}`)},
		{Object: "sql.shop", Request: "bad", Body: []byte(`[{"a":1},{"b":1}]`)},
		{Object: "sql.shop", Request: "nested", Body: []byte(`[{"a":[1]}]`)},
		{Object: "sql.files", Request: "by_name a.db", Body: []byte(`[]`)},
		{Object: "sql.files", Request: "open gone.db", Error: scripting.NotFound},
	})
	for _, c := range []struct{ op, payload, want string }{
		{"sql.query", `{"grant":"shop","statement":"by_name","params":{"name":"x"}}`, `{"columns":["id","name"],"rows":[[1,"ann"],[2.5,null]]}`},
		{"sql.exec", `{"grant":"shop","statement":"add","params":{"name":"x"}}`, `{"changes":1}`},
		{"sql.exec", `{"grant":"shop","statement":"by_name","params":{"name":"x"}}`, scripting.Unavailable},
		{"sql.query", `{"grant":"shop","statement":"bad"}`, scripting.Unavailable},
		{"sql.query", `{"grant":"shop","statement":"nested"}`, scripting.Unavailable},
		{"sql.open", `{"grant":"files","path":"a.db"}`, `{}`},
		{"sql.open", `{"grant":"files","path":"gone.db"}`, scripting.NotFound},
		{"sql.query", `{"grant":"files","path":"./a.db","statement":"by_name","params":{"name":"x"}}`, `{"columns":[],"rows":[]}`},
		{"sql.query", `{"grant":"files","path":"b.db","statement":"by_name","params":{"name":"x"}}`, scripting.Unavailable},
		// Impossible operations are refused without looking at the mocks.
		{"sql.query", `{"grant":"shop","statement":"by_name"}`, scripting.Invalid},
		{"sql.query", `{"grant":"shop","statement":"SELECT 1"}`, scripting.NotGranted},
		{"sql.query", `{"grant":"other","statement":"by_name"}`, scripting.NotGranted},
		{"sql.open", `{"grant":"files","path":"../a.db"}`, scripting.OutsideRoot},
		{"sql.exec", `{"grant":"files","path":"a.db","statement":"add","params":{"name":"x"}}`, scripting.NotGranted},
		{"sql.query", `no JSON`, scripting.Invalid},
	} {
		if got := l.do(t, c.op, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.op, c.payload, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"mock \"sql.files\" \"by_name b.db\" {\n  json = []\n}"}, l.Mocks.Missing()); diff != "" || len(l.Mocks.Unused()) > 0 {
		t.Errorf("unused %v, missing (-want +got)\n%s", l.Mocks.Unused(), diff)
	}
}
