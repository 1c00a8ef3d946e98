//go:build unix

package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRead_ranges(t *testing.T) {
	l := newLab(t)
	l.put("logs/lines", "one\r\ntwo\n\nfour é")
	l.put("logs/bytes", "\xff\x00a")
	for _, c := range []struct{ method, payload, want string }{
		{"readText", at("lines"), `{"text":"one\r\ntwo\n\nfour é"}`},
		{"readText", at("lines", `"max":3`), `{"text":"one"}`},
		{"readText", at("lines", `"max":100`), `{"text":"one\r\ntwo\n\nfour é"}`},
		{"readText", at("lines", `"tail":2`), `{"text":"é"}`},
		{"readText", at("lines", `"tail":1`), `{"text":""}`},
		{"readText", at("lines", `"tail":100`), `{"text":"one\r\ntwo\n\nfour é"}`},
		{"readText", at("lines", `"max":16`), `{"text":"one\r\ntwo\n\nfour "}`},
		{"readText", at("bytes"), `{"text":"�\u0000a"}`},
		{"readBytes", at("bytes"), `{"data64":"/wBh"}`},
		{"readBytes", at("bytes", `"tail":1`), `{"data64":"YQ=="}`},
		{"lines", at("lines"), `{"lines":["one","two","","four é"]}`},
		{"lines", at("lines", `"from":2`), `{"lines":["two","","four é"]}`},
		{"lines", at("lines", `"from":2`, `"max":1`), `{"lines":["two"]}`},
		{"lines", at("lines", `"from":9`), `{"lines":[]}`},
		{"lines", at("bytes"), `{"lines":["�\u0000a"]}`},
		{"readText", at("lines", `"max":1`, `"tail":1`), "INVALID: lines: from, max and tail start at 1, and max and tail exclude each other"},
		{"readText", at("lines", `"max":-1`), "INVALID: lines: from, max and tail start at 1, and max and tail exclude each other"},
		{"readText", at("lines", `"max":"1"`), "INVALID: the operation is malformed: path is a string, and from, max and tail are whole numbers"},
		{"readText", `[]`, "INVALID: the operation is malformed: path is a string, and from, max and tail are whole numbers"},
		{"chmod", at("lines"), "NOT_GRANTED: files have no such operation"},
	} {
		if got := l.do(c.method, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.payload, got, c.want)
		}
	}
}

func TestRead_redacted(t *testing.T) {
	l := newLab(t)
	l.broker.Redact = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("inside"), []byte("[secret:x]")) }
	for method, want := range map[string]string{
		"readText": `{"text":"[secret:x]"}`, "lines": `{"lines":["[secret:x]"]}`, "readBytes": `{"data64":"W3NlY3JldDp4XQ=="}`,
	} {
		if got := l.do(method, at("app.log")); got != want {
			t.Errorf("%s: got %s", method, got)
		}
	}
}

func TestWrite_atomic(t *testing.T) {
	l := newLab(t, func(g *grant.FS) { g.MaxTotal = 64 << 20 })
	contents := map[string]bool{`{"text":"inside"}`: true}
	for _, c := range "ab" {
		contents[`{"text":"`+strings.Repeat(string(c), 100_000)+`"}`] = true
	}
	var all sync.WaitGroup
	for _, c := range "ab" {
		all.Go(func() {
			for range 100 {
				if got := l.do("writeText", at("app.log", `"text":"`+strings.Repeat(string(c), 100_000)+`"`)); got != "{}" {
					t.Error(got)
				}
			}
		})
	}
	reader := Open(l.folder.Grant)
	all.Go(func() {
		for range 100 {
			got := l.outcome(l.broker.Do(t.Context(), reader, "readText", []byte(at("app.log"))))
			if !contents[got] && !strings.HasPrefix(got, "UNAVAILABLE: app.log: another file now has its name") {
				t.Errorf("read %.50s… of %d bytes", got, len(got))
			}
		}
	})
	all.Wait()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	got := l.outcome(l.broker.Do(canceled, l.folder, "writeText", []byte(at("app.log", `"text":"half"`))))
	if want := "UNAVAILABLE: app.log: the call was cancelled"; got != want || !contents[l.do("readText", at("app.log"))] {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"app.log", "sub"}, namesIn(l, l.root)); diff != "" {
		t.Errorf("remaining (-want +got)\n%s", diff)
	}
}

func namesIn(l *lab, folder string) []string {
	l.Helper()
	entries, err := os.ReadDir(folder)
	l.must(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWrite_mode(t *testing.T) {
	l := newLab(t)
	l.must(os.Chmod(filepath.Join(l.root, "app.log"), 0o600))
	for _, c := range []struct{ method, payload, want string }{
		{"writeText", at("app.log", `"text":"new é"`), "{}"},
		{"writeBytes", at("sub/new.bin", `"data64":"/wA="`), "{}"},
		{"readText", at("app.log"), `{"text":"new é"}`},
		{"readBytes", at("sub/new.bin"), `{"data64":"/wA="}`},
		{"writeText", at("none/new", `"text":""`), "NOT_FOUND: none/new: the file or directory does not exist"},
		{"writeText", at("sub", `"text":""`), "DENIED: sub: it is a folder"},
		{"writeText", at("new"), "INVALID: new: set either text or data64"},
		{"writeBytes", at("new", `"data64":"*"`), "INVALID: new: data64 is not standard base64"},
		{"remove", at("sub/new.bin"), "{}"},
		{"remove", at("sub/new.bin"), "NOT_FOUND: sub/new.bin: the file or directory does not exist"},
		{"remove", at("sub"), "DENIED: sub: it is a folder"},
	} {
		if got := l.do(c.method, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.payload, got, c.want)
		}
	}
	if info, err := os.Stat(filepath.Join(l.root, "app.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v: %v", info.Mode(), err)
	}
}

func TestWrite_notGranted(t *testing.T) {
	l := newLab(t, func(g *grant.FS) { g.Write = false })
	for _, method := range []string{"writeText", "writeBytes", "remove"} {
		if got, want := l.do(method, at("app.log", operations[method])), "NOT_GRANTED: app.log: the grant is read-only"; got != want {
			t.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
	if got := l.do("readText", at("app.log")); got != `{"text":"inside"}` {
		t.Error(got)
	}
}

func TestLimits_maxFile(t *testing.T) {
	l := newLab(t, func(g *grant.FS) { g.MaxFile = 10 })
	l.put("logs/ten", "0123456789")
	l.put("logs/more", "0123456789\nabc\n")
	const advice = "at most 10 bytes of a file can be read (max_file); "
	for _, c := range []struct{ method, payload, want string }{
		{"readText", at("ten"), `{"text":"0123456789"}`},
		{"readText", at("more"), "TOO_LARGE: more: " + advice + "read a part of it with max, tail or lines"},
		{"readBytes", at("more", `"max":11`), "TOO_LARGE: more: " + advice + "read a part of it with max, tail or lines"},
		{"readText", at("more", `"tail":4`), `{"text":"abc\n"}`},
		{"lines", at("more"), "TOO_LARGE: more: " + advice + "read fewer lines at once with from and max"},
		{"lines", at("more", `"from":2`), `{"lines":["abc"]}`},
		{"writeText", at("new", `"text":"0123456789"`), "{}"},
		{"writeText", at("new", `"text":"0123456789a"`), "TOO_LARGE: new: a file has at most 10 bytes (max_file)"},
		{"readText", at("new"), `{"text":"0123456789"}`},
	} {
		if got := l.do(c.method, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.payload, got, c.want)
		}
	}
}

func TestLimits_maxTotal(t *testing.T) {
	l := newLab(t, func(g *grant.FS) { g.MaxTotal = 20 })
	const over = "TOO_LARGE: app.log: one call reads and writes at most 20 bytes (max_total)"
	for i, c := range []struct{ method, payload, want string }{
		{"readText", at("app.log"), `{"text":"inside"}`},
		{"lines", at("app.log"), `{"lines":["inside"]}`},
		{"writeText", at("app.log", `"text":"inside2"`), "{}"},
		{"readText", at("app.log"), over},
		{"writeText", at("app.log", `"text":"xx"`), over},
		{"readText", at("app.log", `"max":1`), `{"text":"i"}`},
		{"stat", at("none"), "NOT_FOUND: none: the file or directory does not exist"},
	} {
		if got := l.do(c.method, c.payload); got != c.want {
			t.Errorf("%d: got %s, want %s", i, got, c.want)
		}
	}
	if got := l.outcome(l.broker.Do(t.Context(), Open(l.folder.Grant), "readText", []byte(at("app.log")))); got != `{"text":"inside2"}` {
		t.Errorf("another call: %s", got)
	}
}

func TestRead_sparseFile(t *testing.T) {
	l := newLab(t)
	l.must(os.Truncate(filepath.Join(l.root, "app.log"), 1<<40))
	const advice = "TOO_LARGE: app.log: at most 1048576 bytes of a file can be read (max_file); "
	for _, c := range []struct{ method, payload, want string }{
		{"readText", at("app.log"), advice + "read a part of it with max, tail or lines"},
		{"readBytes", at("app.log", `"tail":2`), `{"data64":"AAA="}`},
		{"lines", at("app.log", `"max":1`), advice + "read fewer lines at once with from and max"},
		{"lines", at("app.log", `"from":2`), "TOO_LARGE: app.log: one call reads and writes at most 10485760 bytes (max_total)"},
	} {
		if got := l.do(c.method, c.payload); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.payload, got, c.want)
		}
	}
	if got := answerOf[statAnswer](l, l.do("stat", at("app.log"))); got.Size != 1<<40 || got.Type != typeFile || got.Modified == 0 {
		t.Errorf("got %+v", got)
	}
}

func encoded(l *lab, answer any) string {
	l.Helper()
	text, err := json.Marshal(answer)
	l.must(err)
	return string(text)
}

// endless is a file that never ends.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestRead_growingFile(t *testing.T) {
	l := newLab(t)
	for method, want := range map[string]string{"readText": `{"text":"\n\n\n"}`, "readBytes": `{"data64":"CgoK"}`, "lines": `{"lines":["","",""]}`} {
		q, err := l.folder.Parse(method, []byte(at("app.log")))
		l.must(err)
		answer, err := l.folder.read(t.Context(), endless{}, 3, q, l.broker.Redact)
		l.must(err)
		if got := encoded(l, answer); got != want {
			t.Errorf("%s of a growing file: got %s, want %s", method, got, want)
		}
		answer, err = l.folder.read(t.Context(), strings.NewReader("\n\n\n"), 1000, q, l.broker.Redact)
		l.must(err)
		if got := encoded(l, answer); got != want {
			t.Errorf("%s of a shrinking file: got %s, want %s", method, got, want)
		}
	}
}

func TestList(t *testing.T) {
	l := newLab(t)
	l.plant()
	for _, name := range []string{".mcpd-X.tmp", "a\nb", "bad\xff", "dot.", ".hidden", "Z"} {
		l.must(os.WriteFile(filepath.Join(l.root, "sub", name), nil, 0o600))
	}
	got := l.do("list", at("sub"))
	want := `{"entries":[{"name":".hidden","type":"file"},{"name":"Z","type":"file"},{"name":"deep.txt","type":"file"},{"name":"link-secret","type":"other"},{"name":"link-top","type":"other"}]}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for payload, want := range map[string]string{
		at("link-evil"): "DENIED: link-evil: the path contains a link, and links are not followed",
		at("app.log"):   "NOT_FOUND: app.log: the directory does not exist",
		at("none"):      "NOT_FOUND: none: the file or directory does not exist",
	} {
		if got := l.do("list", payload); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := answerOf[statAnswer](l, l.do("stat", at("."))); got.Type != typeFolder {
		t.Errorf("got %+v", got)
	}
}

func TestList_tooMany(t *testing.T) {
	l := newLab(t)
	l.folder.maxEntries = 1500
	l.must(os.Mkdir(filepath.Join(l.root, "huge"), 0o700))
	for i := range 1500 {
		l.must(os.Symlink("x", filepath.Join(l.root, "huge", fmt.Sprint(i))))
	}
	if got := answerOf[listAnswer](l, l.do("list", at("huge"))); len(got.Entries) != 1500 {
		t.Errorf("%d entries are listed, want 1500", len(got.Entries))
	}
	l.must(os.Symlink("x", filepath.Join(l.root, "huge", "more")))
	if got, want := l.do("list", at("huge")), "TOO_LARGE: huge: the directory has more than 1500 entries"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
