package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// querier returns the source of a tool with databases.
func querier(body string) Source {
	src := tool(body)
	src.Objects = append(src.Objects, Object{Kind: "sql", Name: "shop"}, Object{Kind: "sql.write", Name: "shop"}, Object{Kind: "sql", Name: "files"}, Object{Kind: "sql.open", Name: "files"}, Object{Kind: "sql", Name: "ro"})
	return src
}

func TestSQL_payload(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`sql.shop.query("s")`, []string{`sql.query {"grant":"shop","statement":"s"}`}},
		{`sql.ro.query("s; DROP TABLE t", null)`, []string{`sql.query {"grant":"ro","statement":"s; DROP TABLE t"}`}},
		{`sql.shop.query("s", { a: 1, b: 1.5, c: "x'", d: null, e: undefined, f: true })`,
			[]string{`sql.query {"grant":"shop","statement":"s","params":{"a":1,"b":1.5,"c":"x'","d":null,"e":null,"f":true}}`}},
		{`sql.shop.exec("s", { a: 9007199254740993n, b: new Uint8Array([0, 255]) })`,
			[]string{`sql.exec {"grant":"shop","statement":"s","params":{"a":{"integer":"9007199254740993"},"b":{"base64":"AP8="}}}`}},
		{`sql.files.open("a.db").then((db) => db.query("s", {}))`, []string{`sql.open {"grant":"files","path":"a.db"}`, `sql.query {"grant":"files","path":"a.db","statement":"s"}`}},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`{}`), nil }}
		out := runWith(t, call(compiled(t, querier("await "+c.body)), `{}`), host)
		if diff := cmp.Diff(c.want, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestSQL_rows(t *testing.T) {
	for _, c := range []struct{ expression, answer, want string }{
		{`sql.shop.query("s")`, `{"columns":["id","name","__proto__"],"rows":[[1,"ä",null],["9007199254740993",true,1.5]]}`,
			`[{"id":1,"name":"ä","__proto__":null},{"id":"9007199254740993","name":true,"__proto__":1.5}]`},
		{`sql.shop.query("s").then((rows) => [rows[0].b instanceof Uint8Array, Array.from(rows[0].b)])`, `{"columns":["b"],"rows":[[{"base64":"AP8="}]]}`, `[true,[0,255]]`},
		{`sql.shop.query("s")`, `{"columns":["a"],"rows":[]}`, `[]`},
		{`sql.shop.exec("s")`, `{"changes":3}`, `{"changes":3}`},
		{`sql.shop.query("s")`, `{"columns":["a"],"rows":[[]]}`, `failure Thrown: the response of the host cannot be decoded`},
		{`sql.shop.query("s")`, `no JSON`, `failure Thrown: the response of the host cannot be decoded`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, querier("return await "+c.expression)), `{}`), host)); got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.expression, c.answer, got, c.want)
		}
	}
}

func TestSQL_invalidArguments(t *testing.T) {
	const value = `failure Thrown: sql.shop.query: the parameter a must be a string, a number, a boolean, null or bytes; write JSON.stringify(x) for objects and lists, and toISOString() for dates`
	for _, c := range []struct{ body, want string }{
		{`sql.shop.query()`, `failure Thrown: sql.shop.query(statement, params): the statement must be the name of a statement block`},
		{`sql.shop.query(["s"])`, `failure Thrown: sql.shop.query(statement, params): the statement must be the name of a statement block`},
		{`sql.shop.query("s", [1])`, `failure Thrown: sql.shop.query: the params must be an object, with the name of each parameter`},
		{`sql.shop.query("s", 1)`, `failure Thrown: sql.shop.query: the params must be an object, with the name of each parameter`},
		{`sql.shop.query("s", { a: NaN })`, `failure Thrown: sql.shop.query: the parameter a must be a number that is finite`},
		{`sql.shop.query("s", { a: -Infinity })`, `failure Thrown: sql.shop.query: the parameter a must be a number that is finite`},
		{`sql.shop.query("s", { a: "\ud800" })`, `failure Thrown: sql.shop.query: the parameter a must be a string of whole characters`},
		{`sql.shop.query("s", { a: {} })`, value},
		{`sql.shop.query("s", { a: [1] })`, value},
		{`sql.shop.query("s", { a: new Date(0) })`, value},
		{`sql.shop.query("s", { a: () => 1 })`, value},
		{`sql.shop.query("s", { a: Symbol() })`, value},
		{`sql.files.open()`, `failure Thrown: sql.files.open(path): the path must be a string`},
	} {
		host := &fakeHost{}
		if got := shown(runWith(t, call(compiled(t, querier("await "+c.body)), `{}`), host)); got != c.want || len(host.calls()) > 0 {
			t.Errorf("%s: got %s after %v, want %s", c.body, got, host.calls(), c.want)
		}
	}
}

func TestSQL_notGranted(t *testing.T) {
	for body, want := range map[string]string{
		`return sql.shp.query("s")`:         `sql.shp is not granted: did you mean "shop"? add sql "shp" { driver = "sqlite" … } to the allow block`,
		`return sql.query("s")`:             `sql.query is not granted: statements are run through a grant: write sql.shop.query(...); granted is shop, files, ro`,
		`return sql.ro.exec("s")`:           `sql.ro has no exec: the grant is read-only: add mode = "rw" to its block`,
		`return sql.files.query("s")`:       `sql.files has no query: a call chooses the file: write const db = await sql.files.open(path), and await db.query(statement, params); such files are read-only`,
		`return sql.shop.open("x")`:         `sql.shop has no open: its block names one database: write sql.shop.query(statement, params)`,
		`return sql.shop.qery("s")`:         `sql.shop has no member "qery": did you mean "query"? there is query, exec`,
		`return sql.shop.query("s").length`: `did you forget await? write (await sql.NAME.query(statement)).length`,
	} {
		_, problems := Compile(querier(body))
		if len(problems) != 1 || problems[0].Summary+": "+problems[0].Detail != want && problems[0].Detail != want {
			t.Errorf("%s: %v, want %s", body, problems, want)
		}
	}
}
