package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keeper returns the source of a tool with key-value stores.
func keeper(body string) Source {
	src := tool(body)
	src.Objects = append(src.Objects, Object{Kind: "kv", Name: "notes"})
	return src
}

func TestKV_payload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`kv.notes.get("a")`, `kv.get {"grant":"notes","key":"a"}`},
		{`kv.notes.get("")`, `kv.get {"grant":"notes","key":""}`},
		{`kv.notes.get("a\u0000/../ä<")`, `kv.get {"grant":"notes","key":"a\u0000/../ä<"}`},
		{`kv.notes.delete("a")`, `kv.delete {"grant":"notes","key":"a"}`},
		{`kv.notes.put("a", { b: [1, "ä<&>"], c: undefined })`, `kv.put {"grant":"notes","key":"a","value":{"b":[1,"ä<&>"]}}`},
		{`kv.notes.put("a", null, { ttl: 1500.9, ifAbsent: true })`, `kv.put {"grant":"notes","key":"a","value":null,"ttl_ms":1500,"if_absent":true}`},
		{`kv.notes.put("a", "\\ud800 \u0000\u{1f600}", { ttl: undefined, ifAbsent: false })`, `kv.put {"grant":"notes","key":"a","value":"\\ud800 \u0000😀"}`},
		{`kv.notes.put("a", 1, { ttl: 1e300 })`, `kv.put {"grant":"notes","key":"a","value":1,"ttl_ms":3153600000000}`},
		{`kv.notes.cas("a", undefined, 1)`, `kv.cas {"grant":"notes","key":"a","value":1}`},
		{`kv.notes.cas("a", null, false)`, `kv.cas {"grant":"notes","key":"a","value":false,"expected":null}`},
		{`kv.notes.incr("a")`, `kv.incr {"grant":"notes","key":"a"}`},
		{`kv.notes.incr("a", -9007199254740991)`, `kv.incr {"grant":"notes","key":"a","by":-9007199254740991}`},
		{`kv.notes.incr("a", 0)`, `kv.incr {"grant":"notes","key":"a","by":0}`},
		{`kv.notes.list()`, `kv.list {"grant":"notes"}`},
		{`kv.notes.list("a/", { limit: 5, after: "a/b" })`, `kv.list {"grant":"notes","prefix":"a/","limit":5,"after":"a/b"}`},
		{`kv["notes"]["list"](null, {})`, `kv.list {"grant":"notes"}`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`{}`), nil }}
		out := runWith(t, call(compiled(t, keeper("await "+c.body)), `{}`), host)
		if diff := cmp.Diff([]string{c.want}, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestKV_result(t *testing.T) {
	for _, c := range []struct{ expression, answer, want string }{
		{`kv.notes.get("a")`, `{"value":{"b":[1,"ä"]}}`, `{"b":[1,"ä"]}`},
		{`kv.notes.get("a") === undefined`, `{}`, `true`},
		{`kv.notes.get("a") === null`, `{"value":null}`, `true`},
		{`kv.notes.put("a", 1)`, `{"done":true}`, `true`},
		{`kv.notes.cas("a", 1, 2)`, `{"done":false}`, `false`},
		{`kv.notes.delete("a")`, `{"done":true}`, `true`},
		{`kv.notes.incr("a")`, `{"value":-7}`, `-7`},
		{`kv.notes.list()`, `{"keys":["a","__proto__"]}`, `["a","__proto__"]`},
		{`kv.notes.list()`, `{"keys":[]}`, `[]`},
		{`kv.notes.get("a")`, `no JSON`, `failure Thrown: the response of the host cannot be decoded`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, keeper("return await "+c.expression)), `{}`), host)); got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.expression, c.answer, got, c.want)
		}
	}
}

func TestKV_invalidArguments(t *testing.T) {
	const key = `failure Thrown: kv.notes: the key must be a string of whole characters`
	for _, c := range []struct{ body, want string }{
		{`kv.notes.get()`, key},
		{`kv.notes.get(1)`, key},
		{`kv.notes.get(["a"])`, key},
		{`kv.notes.get(new String("a"))`, key},
		{`kv.notes.get({ toString: () => "a" })`, key},
		{`kv.notes.get("\ud800")`, key},
		{`kv.notes.put("a")`, `failure Thrown: kv.notes: the value must be a JSON value; use null, or delete the key`},
		{`kv.notes.put("a", () => 1)`, `failure Thrown: kv.notes: the value must be a JSON value; use null, or delete the key`},
		{`kv.notes.put("a", { b: ["😀".slice(0, 1)] })`, `failure Thrown: kv.notes: the value contains half of a character, like truncated text; keep whole characters`},
		{`kv.notes.cas("a", "\udc00", 1)`, `failure Thrown: kv.notes: what is expected contains half of a character, like truncated text; keep whole characters`},
		{`kv.notes.put("a", 1n)`, `failure Thrown: a BigInt cannot be written as JSON; write String(value)`},
		{`kv.notes.put("a", 1, 60)`, `failure Thrown: kv.notes: the options must be an object`},
		{`kv.notes.put("a", 1, { expires: 1 })`, `failure Thrown: kv.notes: there is no option expires; there are ttl and ifAbsent`},
		{`kv.notes.put("a", 1, { ttl: "1h" })`, `failure Thrown: kv.notes: ttl must be a number of milliseconds`},
		{`kv.notes.put("a", 1, { ttl: 0.5 })`, `failure Thrown: kv.notes: ttl must be a number of milliseconds`},
		{`kv.notes.cas("a", 1)`, `failure Thrown: kv.notes: the value must be a JSON value; use null, or delete the key`},
		{`kv.notes.cas("a", Symbol("x"), 1)`, `failure Thrown: kv.notes: what is expected must be a JSON value; use null, or delete the key`},
		{`kv.notes.incr("a", 0.5)`, `failure Thrown: kv.notes: what is added must be a whole number`},
		{`kv.notes.incr("a", 2 ** 53)`, `failure Thrown: kv.notes: what is added must be a whole number`},
		{`kv.notes.incr("a", 1e300)`, `failure Thrown: kv.notes: what is added must be a whole number`},
		{`kv.notes.list("a", { limit: 0 })`, `failure Thrown: kv.notes: limit must be at least 1`},
		{`kv.notes.list(1)`, `failure Thrown: kv.notes: the prefix must be a string of whole characters`},
		{`kv.notes.list("", { from: "a" })`, `failure Thrown: kv.notes: there is no option from; there are limit and after`},
	} {
		host := &fakeHost{}
		if got := shown(runWith(t, call(compiled(t, keeper(c.body)), `{}`), host)); got != c.want || len(host.calls()) > 0 {
			t.Errorf("%s: got %s, want %s; host calls %q", c.body, got, c.want, host.calls())
		}
	}
}

func TestKV_grantNames(t *testing.T) {
	for _, c := range []struct {
		name string
		src  Source
		want []string
	}{
		{"no grant", tool("return kv.notes.get('a')"), []string{
			`tools.d/t.hcl:5:8 "kv": error: kv is not defined`, `grant it: allow { kv "name" {} } makes kv.name`}},
		{"another grant", keeper("return kv.note.get('a')"), []string{
			`tools.d/t.hcl:5:11 "note": error: kv.note is not granted`, `did you mean "notes"? add kv "note" {} to the allow block`}},
		{"a method without its grant", keeper("return kv.get('a')"), []string{
			`tools.d/t.hcl:5:11 "get": error: kv.get is not granted`, `values are kept through a grant: write kv.notes.get(...); granted is notes`}},
		{"a method that there is not", keeper("return kv.notes.set('a', 1)"), []string{
			`tools.d/t.hcl:5:17 "set": warning: kv.notes has no member "set"`, `did you mean "get"? there is get, put, delete, cas, list, incr`}},
		{"a value that was not awaited", keeper("return kv.notes.get('a').text"), []string{
			`tools.d/t.hcl:5:26 "text": warning: a promise has no member "text"`, `did you forget await? write (await kv.NAME.get(key)).text`}},
	} {
		_, list := Compile(c.src)
		got := formatDiagnostics(c.src, list)
		if len(list) == 1 {
			got = append(got, list[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A replay stores nothing twice.
func TestKV_replay(t *testing.T) {
	host := &fakeHost{answer: func(_ context.Context, op string, _ []byte) ([]byte, error) {
		if op == "kv.incr" {
			return []byte(`{"value":1}`), nil
		}
		return []byte(`{"done":true}`), nil
	}}
	c := call(compiled(t, keeper(`const n = await kv.notes.incr("n"); await kv.notes.put("last", n); return n;`)), `{}`)
	c.Journal = NewJournal()
	for range 3 {
		if got := shown(runWith(t, c, host)); got != "1" {
			t.Fatal(got)
		}
	}
	want := []string{`kv.incr {"grant":"notes","key":"n"}`, `kv.put {"grant":"notes","key":"last","value":1}`}
	if diff := cmp.Diff(want, host.calls()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
