package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// grantLocal grants directories and environment variables.
func grantLocal(l *lab, folders []grant.FS, variables ...string) {
	l.Grant(host.NewGrants(grant.Set{FS: folders, Env: variables}))
}

// onDisk grants a directory with notes.txt, and environment variables.
func onDisk(t *testing.T, l *lab) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "notes.txt"), []byte("the token is "+password), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Files = &files.Broker{Redact: l.Secrets.RedactBytes, Logger: l.Logger}
	grantLocal(l, []grant.FS{{Name: "notes", Root: root, ResolvedPath: root, Write: true}}, "TOKEN", "LANG")
}

func TestRedact_filesAndEnvironment(t *testing.T) {
	t.Run("before their first use", func(t *testing.T) { readWithoutSecrets(t, newLab(t)) })
	t.Run("after it", func(t *testing.T) {
		l := newLab(t)
		if _, err := l.Secrets.Resolve(t.Context(), "token"); err != nil {
			t.Fatal(err)
		}
		readWithoutSecrets(t, l)
	})
}

func readWithoutSecrets(t *testing.T, l *lab) {
	onDisk(t, l)
	for _, c := range []struct{ op, payload, want string }{
		{"fs.readText", `{"grant":"notes","path":"notes.txt"}`, `{"text":"the token is [secret:token]"}`},
		{"fs.writeText", `{"grant":"notes","path":"new.txt","text":"x"}`, `{}`},
		{"fs.list", `{"grant":"notes","path":"."}`, `{"entries":[{"name":"new.txt","type":"file"},{"name":"notes.txt","type":"file"}]}`},
		{"fs.readText", `{"grant":"other","path":"notes.txt"}`, scripting.NotGranted},
		{"fs.readText", `{"path":"notes.txt"}`, scripting.NotGranted},
		{"fs.readText", `no JSON`, scripting.Invalid},
		{"fs.chmod", `{"grant":"notes","path":"notes.txt"}`, scripting.NotGranted},
		{"fs.", `{"grant":"notes","path":"notes.txt"}`, scripting.NotGranted},
		{"env", `{}`, `{"TOKEN":"[secret:token]"}`},
		{"env", `null`, scripting.Invalid},
		{"env", `[]`, scripting.Invalid},
	} {
		if got := l.do(t, c.op, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.op, c.payload, got, c.want)
		}
	}
}

func TestOperations_notGranted(t *testing.T) {
	l := newLab(t)
	grantLocal(l, nil)
	for _, op := range []string{"fs.readText", "fs.list", "env"} {
		if got := l.do(t, op, `{"grant":"notes","path":"notes.txt"}`); got != scripting.NotGranted {
			t.Errorf("%s: got %s", op, got)
		}
	}
}

func TestMocks_files(t *testing.T) {
	l := newLab(t)
	grantLocal(l, []grant.FS{{Name: "logs", Root: "/var/log/app", MaxFile: 100}, {Name: "out", Root: "out", Write: true}}, "LANG", "TOKEN")
	l.Mocks = host.NewMocks([]host.Mock{
		{Object: "fs.logs", Request: "readText app.log", Body: []byte("one\ntwo\n")},
		{Object: "fs.logs", Request: "lines app.log", Body: []byte("one\ntwo\n")},
		{Object: "fs.logs", Request: "lines json.log", Body: []byte(`["a","b"]`)},
		{Object: "fs.logs", Request: "readBytes gone.log", Error: scripting.NotFound},
		{Object: "fs.logs", Request: "readText large.log", Body: make([]byte, 101)},
		{Object: "fs.logs", Request: "list .", Body: []byte(`["a",{"name":"b","type":"folder"}]`)},
		{Object: "fs.logs", Request: "list bad", Body: []byte(`[1]`)},
		{Object: "fs.logs", Request: "stat app.log", Body: []byte(`{"size":7}`)},
		{Object: "fs.out", Request: "writeText any.txt"},
		{Object: "fs.out", Request: "writeText this.txt", Body: []byte("this")},
		{Object: "fs.out", Request: "remove any.txt"},
		{Object: "env", Request: "LANG", Body: []byte("C")},
		{Object: "env", Request: "TZ", Body: []byte("UTC")},
	})
	for _, c := range []struct{ op, payload, want string }{
		{"fs.readText", `{"grant":"logs","path":"app.log"}`, `{"text":"one\ntwo\n"}`},
		{"fs.readText", `{"grant":"logs","path":"/var/log/app/./app.log","tail":4}`, `{"text":"two\n"}`},
		{"fs.lines", `{"grant":"logs","path":"app.log","from":2}`, `{"lines":["two"]}`},
		{"fs.lines", `{"grant":"logs","path":"json.log"}`, `{"lines":["a","b"]}`},
		{"fs.readBytes", `{"grant":"logs","path":"gone.log"}`, scripting.NotFound},
		{"fs.readText", `{"grant":"logs","path":"large.log"}`, scripting.TooLarge},
		{"fs.list", `{"grant":"logs","path":"."}`, `{"entries":[{"name":"a","type":"file"},{"name":"b","type":"folder"}]}`},
		{"fs.list", `{"grant":"logs","path":"bad"}`, scripting.Unavailable},
		{"fs.stat", `{"grant":"logs","path":"app.log"}`, `{"type":"file","size":7,"modified":0}`},
		{"fs.writeText", `{"grant":"out","path":"any.txt","text":"x"}`, `{}`},
		{"fs.writeText", `{"grant":"out","path":"this.txt","text":"this"}`, `{}`},
		{"fs.remove", `{"grant":"out","path":"any.txt"}`, `{}`},
		{"env", `{}`, `{"LANG":"C"}`},
		// Impossible operations are refused without looking at the mocks.
		{"fs.readText", `{"grant":"logs","path":"../x"}`, scripting.OutsideRoot},
		{"fs.writeText", `{"grant":"logs","path":"app.log","text":"x"}`, scripting.NotGranted},
	} {
		if got := l.do(t, c.op, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.op, c.payload, got, c.want)
		}
	}
	if unused := l.Mocks.Unused(); len(unused) != 1 || unused[0].Request != "TZ" || l.Mocks.Missing() != nil {
		t.Errorf("unused %v, missing %q", unused, l.Mocks.Missing())
	}
}

func TestMocks_missingFile(t *testing.T) {
	l := newLab(t)
	grantLocal(l, []grant.FS{{Name: "out", Root: "/out", Write: true}})
	l.Mocks = host.NewMocks([]host.Mock{{Object: "fs.out", Request: "writeText a.txt", Body: []byte("this")}})
	for _, c := range []struct{ op, payload string }{
		{"fs.readText", `{"grant":"out","path":"/out/a.txt"}`}, {"fs.list", `{"grant":"out","path":"."}`}, {"fs.stat", `{"grant":"out","path":"a"}`},
		{"fs.remove", `{"grant":"out","path":"a"}`}, {"fs.writeBytes", `{"grant":"out","path":"a","data64":"aGk="}`},
		{"fs.writeText", `{"grant":"out","path":"a.txt","text":"that"}`},
	} {
		if got := l.do(t, c.op, c.payload); got != scripting.Unavailable {
			t.Errorf("%s: got %s", c.op, got)
		}
	}
	want := []string{
		"mock \"fs.out\" \"readText a.txt\" { text = \"\" }", "mock \"fs.out\" \"list .\" { json = [\"a.txt\"] }", "mock \"fs.out\" \"stat a\" {\n  json = { size = 1 }\n}",
		"mock \"fs.out\" \"remove a\" {}", "mock \"fs.out\" \"writeBytes a\" { text = \"hi\" }",
		"mock \"fs.out\" \"writeText a.txt\" { text = \"that\" }\ninstead of the mock that expects other content",
	}
	if diff := cmp.Diff(want, l.Mocks.Missing()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
