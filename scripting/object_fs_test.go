package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files is the source of a tool with the grants fs.logs, to read, and fs.out, to write.
func files(body string) Source {
	src := tool(body)
	src.Objects = []Object{{Kind: "fs", Name: "logs"}, {Kind: "fs", Name: "out"}, {Kind: "fs.write", Name: "out"}, {Kind: "env", Name: "LANG"}, {Kind: "env", Name: "TZ"}}
	return src
}

func TestFS_payload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`await fs.logs.readText("a.log")`, `fs.readText {"grant":"logs","path":"a.log"}`},
		{`await fs.logs.readText("a\n\u0000é", { tail: 10, max: undefined })`, `fs.readText {"grant":"logs","path":"a\n\u0000é","tail":10}`},
		{`await fs.logs.readBytes("a.log", { max: 3 })`, `fs.readBytes {"grant":"logs","path":"a.log","max":3}`},
		{`await fs.logs.lines("a.log", { from: 2, max: 3 })`, `fs.lines {"grant":"logs","path":"a.log","from":2,"max":3}`},
		{`await fs.logs.list()`, `fs.list {"grant":"logs","path":"."}`},
		{`await fs.logs.list("sub")`, `fs.list {"grant":"logs","path":"sub"}`},
		{`await fs.logs.stat("a.log")`, `fs.stat {"grant":"logs","path":"a.log"}`},
		{`await fs.out.writeText("a.log", "")`, `fs.writeText {"grant":"out","path":"a.log","text":""}`},
		{`await fs.out.writeBytes("a.log", new Uint8Array([255, 0]))`, `fs.writeBytes {"grant":"out","path":"a.log","data64":"/wA="}`},
		{`await fs.out.remove("a.log")`, `fs.remove {"grant":"out","path":"a.log"}`},
		{`const { readText } = fs.logs; await readText("a.log")`, `fs.readText {"grant":"logs","path":"a.log"}`},
		{`await fs["logs"]["stat"]("a.log")`, `fs.stat {"grant":"logs","path":"a.log"}`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
			return []byte(`{"text":"","data64":"","lines":[],"entries":[],"type":"file"}`), nil
		}}
		out := runWith(t, call(compiled(t, files(c.body)), `{}`), host)
		if diff := cmp.Diff([]string{c.want}, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestFS_result(t *testing.T) {
	const unread = `failure Thrown: the response of the host cannot be decoded`
	for _, c := range []struct{ expression, answer, want string }{
		{`fs.logs.readText("a")`, `{"text":"\ufeffhé"}`, `"hé"`},
		{`fs.logs.readText("a")`, `{}`, unread},
		{`fs.logs.readBytes("a").then(b => [b instanceof Uint8Array, Array.from(b)])`, `{"data64":"/wA="}`, `[true,[255,0]]`},
		{`fs.logs.readBytes("a")`, `{"data64":"*"}`, unread},
		{`fs.logs.lines("a")`, `{"lines":["a",""]}`, `["a",""]`},
		{`fs.logs.lines("a")`, `{"lines":[]}`, `[]`},
		{`fs.logs.lines("a")`, `not JSON`, unread},
		{`fs.logs.list()`, `{"entries":[{"name":"__proto__","type":"file"}]}`, `[{"name":"__proto__","type":"file"}]`},
		{`fs.logs.list()`, `{}`, unread},
		{`fs.logs.stat("a")`, `{"type":"file","size":1099511627776,"modified":1767323045000}`, `{"type":"file","size":1099511627776,"modified":1767323045000}`},
		{`fs.logs.stat("a")`, `{}`, unread},
		{`fs.out.remove("a").then(v => typeof v)`, `{}`, `"undefined"`},
		{`[typeof fs.logs.readText, typeof fs["logs"]["write" + "Text"], typeof fs.out.writeText, typeof fs["o" + "ther"]]`, ``, `["function","undefined","function","undefined"]`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, files(`return await `+c.expression)), `{}`), host)); got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.expression, c.answer, got, c.want)
		}
	}
}

func TestFS_invalidArguments(t *testing.T) {
	for body, want := range map[string]string{
		`fs.logs.readText()`:                         `fs.logs.readText(path): the path must be a string`,
		`fs.logs.list({})`:                           `fs.logs.list(path): the path must be a string`,
		`fs.logs.readText("a", 10)`:                  `fs.logs.readText: the options are an object with tail and max`,
		`fs.logs.readText("a", { from: 1 })`:         `fs.logs.readText: there is no option from; the options are an object with tail and max`,
		`fs.logs.readText("a", { max: 1, tail: 1 })`: `fs.logs.readText: give one of max and tail`,
		`fs.logs.lines("a", { from: 0 })`:            `fs.logs.lines: from must be a whole number from 1 on`,
		`fs.logs.lines("a", { max: 1.5 })`:           `fs.logs.lines: max must be a whole number from 1 on`,
		`fs.logs.stat("a", {})`:                      `fs.logs.stat: it takes only a path`,
		`fs.out.writeText("a", {})`:                  `fs.out.writeText(path, text): text must be a string; use writeBytes for bytes, and JSON.stringify for objects`,
		`fs.out.writeBytes("a", "b")`:                `fs.out.writeBytes(path, bytes): bytes must be a typed array; use writeText for text`,
	} {
		host := &fakeHost{}
		if got := shown(runWith(t, call(compiled(t, files(body)), `{}`), host)); got != "failure Thrown: "+want || len(host.calls()) > 0 {
			t.Errorf("%s: got %s, want %s; host calls %q", body, got, want, host.calls())
		}
	}
}

func TestFS_hostError(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: OutsideRoot, Message: "../a: outside"}
	}}
	body := `try { await fs.logs.readText("../a") } catch (e) { return [e instanceof HostError, e.code, e.message] }`
	if got, want := shown(runWith(t, call(compiled(t, files(body)), `{}`), host)), `[true,"OUTSIDE_ROOT","../a: outside"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGrants_diagnostics(t *testing.T) {
	for body, want := range map[string]string{
		`return fs.lgos.list()`:                     `error unknown-grant: fs.lgos is not granted; did you mean "logs"? add fs "lgos" { root = "…" } to the allow block`,
		`return fs.readText("a")`:                   `error unknown-grant: fs.readText is not granted; files are reached through a grant: write fs.logs.readText(...); granted is logs, out`,
		`return fs.logs.writeText("a", "b")`:        `error unknown-grant: fs.logs is read-only, so it has no writeText; add mode = "rw" to its block`,
		`return fs.logs.read("a")`:                  `warning undefined-name: fs.logs has no member "read"; did you mean "readText"? there is readText, lines, readBytes, list, stat`,
		`return fs.out.unlink("a")`:                 `warning undefined-name: fs.out has no member "unlink"; there is readText, lines, readBytes, list, stat, writeText, writeBytes, remove`,
		`return fs.logs.readText("a").length`:       `warning missing-await: a promise has no member "length"; did you forget await? write (await fs.NAME.readText(path)).length`,
		`return env.LNAG`:                           `error unknown-grant: env.LNAG is not granted; did you mean "LANG"? add it to the allow block: env { names = ["LNAG"] }`,
		`return env.LANG + fs.out.remove.name + ""`: ``,
	} {
		_, problems := Compile(files(body))
		got := ""
		for _, p := range problems {
			got += p.Severity.String() + " " + p.Code + ": " + p.Summary + "; " + p.Detail
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
	for body, want := range map[string]string{
		`return fs.logs.list()`: `grant it: allow { fs "name" { root = "folder" } } makes fs.name`,
		`return env.LANG`:       `grant it: allow { env { names = ["NAME"] } } makes env.NAME`,
	} {
		src := files(body)
		src.Objects = nil
		_, problems := Compile(src)
		if len(problems) != 1 || problems[0].Detail != want || !problems.HasErrors() {
			t.Errorf("%s: got %v, want %s", body, problems, want)
		}
	}
}
