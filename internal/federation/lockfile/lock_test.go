package lockfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func mustJSON(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// of parses an entry of an upstream.
func of(t testing.TB, upstream, entry string) lockfile.Tool {
	t.Helper()
	read, err := lockfile.ParseTool(upstream, json.RawMessage(entry))
	if err != nil {
		t.Fatalf("%.200s: %v", entry, err)
	}
	return read
}

// shown returns the lock in testdata/mcpd.lock.
func shown(t testing.TB) *lockfile.Lock {
	return new(lockfile.Lock).
		WithTools("everything",
			of(t, "everything", `{"name":"echo","description":"Echoes back the input","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"Message to echo"}},"required":["message"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}}`),
			of(t, "everything", `{"name":"a\u202e\" b","title":"","description":"\u001b[2JHidden\u200b.\n\nA long line that goes on and on, and is wrapped somewhere before it is as wide as that of a terminal; 漢字。次","annotations":{"idempotentHint":true,"x":[[],{},[1.50,-2e40,null]]},"outputSchema":{"A sentence. As a name":1}}`)).
		WithTools("empty").
		WithTools("an \"upstream\"", of(t, "an \"upstream\"", `{"name":"t"}`))
}

func TestEncode(t *testing.T) {
	file := shown(t).Encode()
	golden(t, "mcpd.lock", string(file))
	checkShown(t, string(file))
	read, err := lockfile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(shown(t)), contents(read)); diff != "" {
		t.Errorf("the parsed lock differs (-want +got)\n%s", diff)
	}
	if again := read.Encode(); !bytes.Equal(again, file) {
		t.Errorf("its file differs:\n%s", cmp.Diff(string(file), string(again)))
	}
}

// contents returns the content of a lock.
func contents(l *lockfile.Lock) map[string][]lockfile.Tool {
	held := map[string][]lockfile.Tool{}
	for _, upstream := range l.Upstreams() {
		held[upstream] = l.Tools(upstream)
	}
	return held
}

func TestEncode_empty(t *testing.T) {
	read, err := lockfile.Parse(new(lockfile.Lock).Encode())
	if err != nil || len(read.Upstreams()) > 0 {
		t.Errorf("it holds %v, %v", read, err)
	}
}

// The orders include the result of a merge, and Windows line ends.
func TestParse_anyOrder(t *testing.T) {
	head, rest, _ := strings.Cut(string(shown(t).Encode()), "\n\n")
	blocks := strings.Split(strings.TrimSpace(rest), "\n\n")
	file := head
	for i := range blocks {
		file += "\n\n# of somebody\n" + blocks[len(blocks)-1-i]
	}
	for _, file := range []string{file, strings.ReplaceAll(file, "\n", "\r\n"), file + "\n\n\n"} {
		read, err := lockfile.Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(shown(t)), contents(read)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestParse_errors(t *testing.T) {
	file := string(new(lockfile.Lock).WithTools("github", tool(t, `{"name":"a","description":"Reads. Writes.","title":"\"\\"}`)).Encode())
	block := file[strings.Index(file, "tool "):]
	hash := block[strings.Index(block, "sha256 ")+7:][:64]
	edited := func(old, new string) string {
		if strings.Count(file, old) != 1 {
			t.Fatalf("%q is not once in\n%s", old, file)
		}
		return strings.Replace(file, old, new, 1)
	}
	const mixed = `line 8: tool "github" "a": the definition does not match its sha256: it was edited by hand, or mixed by a merge`
	for _, row := range []struct{ name, file, want string }{
		{"nothing", "", `the file has no line "mcpd.lock 1"`},
		{"no version", "# x\n\nupstream \"a\"\n", `line 3: want "mcpd.lock 1", the version that this mcpd reads`},
		{"another version", edited("mcpd.lock 1", "mcpd.lock 2"), `line 4: want "mcpd.lock 1", the version that this mcpd reads`},
		{"another text", edited(`" Writes."`, `" Reads."`), mixed},
		{"a line less", edited("\n      \" Writes.\"", ""), mixed},
		{"another hash", edited(hash, strings.Repeat("0", 64)), mixed},
		{"a member that is no part", edited(`  "name"`, `  "extra": 1,`+"\n"+`  "name"`), mixed},
		{"another name", edited(`"github" "a"`, `"github" "b"`), `line 8: tool "github" "b": the definition has another name`},
		{"no name", edited(`"github" "a"`, `"github"`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"a name without an end", edited(`"github" "a"`, `"github" "a\"`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"a name and more", edited(`"github" "a"`, `"github" "a" x`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"no hash", edited("sha256 "+hash+"\n", ""), `line 8: tool "github" "a": want sha256 and the hash of the definition in the next line`},
		{"no definition", file[:strings.Index(file, "{\n")], `line 8: tool "github" "a": want { and the definition in the line after its sha256`},
		{"an end that is missing", strings.TrimSuffix(file, "}\n"), `line 8: tool "github" "a": the definition has no end`},
		{"an end that is missing before another tool", strings.TrimSuffix(file, "}\n") + block, `line 8: tool "github" "a": the definition has no end before line 15`},
		{"no JSON", edited(`"name": "a"`, `"name" "a"`), `line 8: tool "github" "a": read definition: the JSON text has an unexpected character where a colon should be (at byte 42)`},
		{"an escape over two lines", edited(`"\"\\"`, `"\"\`+"\n"+`\"`), `line 8: tool "github" "a": the definition has no end before line 15`},
		{"an escape in two strings", edited(`"\"\\"`, `"\"\"`+"\n"+`    "\"`), `line 8: tool "github" "a": read definition: the JSON text has an unexpected character where a comma or a closing brace should be (at byte 64)`},
		{"a name twice", edited(`"name": "a"`, `"name": "a", "name": "a"`), `line 8: tool "github" "a": read definition: an object has two members of the same name (at byte 48)`},
		{"a part of another type", edited(`"name": "a"`, `"name": 1`), `line 8: tool "github" "a": read definition: the name is not a string`},
		{"a tool twice", file + block, `line 16: tool "github" "a": it is also in line 8; remove one of the two`},
		{"a conflict", edited("tool ", "<<<<<<< HEAD\ntool "), `line 8: merge conflict is not resolved`},
		{"a conflict in a definition", edited("  \"name\"", "=======\n  \"name\""), `line 13: tool "github" "a": merge conflict is not resolved`},
		{"a character that moves others", edited("Reads.", "Reads.\u202e"), `line 11: the character U+202E is not escaped`},
		{"an unknown word", file + "agent \"a\"\n", `line 16: want upstream NAME or tool UPSTREAM NAME, each name a JSON string`},
		{"an upstream without a name", file + "upstream a\n", `line 16: want upstream NAME or tool UPSTREAM NAME, each name a JSON string`},
		{"a long file", strings.Repeat("\n", 64<<20+1), `the file is longer than 64 MiB`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := lockfile.Parse([]byte(row.file))
			if diff := cmp.Diff(row.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLock_immutable(t *testing.T) {
	a, b, c := tool(t, `{"name":"a"}`), tool(t, `{"name":"b"}`), tool(t, `{"name":"a","title":"x"}`)
	first := new(lockfile.Lock).WithTools("github", b, a, of(t, "gitlab", `{"name":"z"}`))
	second := first.Accept(
		lockfile.Change{Kind: lockfile.Changed, Upstream: "github", Name: "a", Old: a, New: c},
		lockfile.Change{Kind: lockfile.Removed, Upstream: "github", Name: "b", Old: b},
		lockfile.Change{Kind: lockfile.Added, Upstream: "gitlab", Name: "z", New: of(t, "gitlab", `{"name":"z"}`)},
	)
	for _, row := range []struct {
		name string
		lock *lockfile.Lock
		want map[string][]lockfile.Tool
	}{
		{"pinned", first, map[string][]lockfile.Tool{"github": {a, b}}},
		{"accepted", second, map[string][]lockfile.Tool{"github": {c}, "gitlab": {of(t, "gitlab", `{"name":"z"}`)}}},
	} {
		if diff := cmp.Diff(row.want, contents(row.lock)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.name, diff)
		}
	}
}

// FuzzParse checks that a parsed lock survives encoding and parsing.
func FuzzParse(f *testing.F) {
	file := string(shown(f).Encode())
	f.Add(file)
	f.Add("mcpd.lock 1\nupstream \"a\"\ntool \"a\" \"b\"\nsha256 0\n{\n}\n")
	f.Add(strings.ReplaceAll(file, "\n", "\r\n"))
	f.Add(strings.Replace(file, "  ", "\t", -1))
	f.Fuzz(func(t *testing.T, file string) {
		lock, err := lockfile.Parse([]byte(file))
		if err != nil {
			checkShown(t, err.Error())
			return
		}
		encoded := lock.Encode()
		again, err := lockfile.Parse(encoded)
		if err != nil {
			t.Fatalf("%v:\n%s", err, encoded)
		}
		if diff := cmp.Diff(contents(lock), contents(again)); diff != "" {
			t.Fatal(diff)
		}
		checkShown(t, string(encoded))
	})
}

func TestLockHash(t *testing.T) {
	a, b, other := tool(t, `{"name":"a"}`), tool(t, `{"name":"b"}`), tool(t, `{"name":"a","title":"x"}`)
	none := new(lockfile.Lock)
	locks := []*lockfile.Lock{
		none, none.WithTools("github"), none.WithTools("git").WithTools("hub"), none.WithTools("github", a), none.WithTools("github", b), none.WithTools("github", a, b), none.WithTools("github", b).WithTools("github", a),
		none.WithTools("github", other), none.WithTools("gitlab", of(t, "gitlab", `{"name":"a"}`)), none.WithTools("github", a).WithTools("gitlab", of(t, "gitlab", `{"name":"b"}`)),
		none.WithTools("github").WithTools("gitlab", of(t, "gitlab", `{"name":"a"}`), of(t, "gitlab", `{"name":"b"}`)),
	}
	for i, l := range locks {
		for j, r := range locks {
			if same := string(l.Encode()) == string(r.Encode()); same != (l.Hash() == r.Hash()) {
				t.Errorf("%d and %d: equal files %t, equal hashes %t", i, j, same, !same)
			}
		}
	}
	read, err := lockfile.Parse(shown(t).Encode())
	if err != nil || read.Hash() != shown(t).Hash() {
		t.Errorf("a parsed lock has another hash, %v", err)
	}
}

// Builds of catalogs hash everything that is accepted.
func TestLockHash_allocations(t *testing.T) {
	var list []lockfile.Tool
	for _, entry := range entries(2000) {
		list = append(list, tool(t, string(entry)))
	}
	lock := new(lockfile.Lock).WithTools("github", list...)
	if n := testing.AllocsPerRun(10, func() { lock.Hash() }); n > 5 {
		t.Errorf("hashing 2,000 tools allocates %.0f times", n)
	}
}

// made caches the results of long by upstream, because they take time.
var made = struct {
	sync.Mutex
	of map[string][]lockfile.Tool
}{of: map[string][]lockfile.Tool{}}

// long returns n tools of almost the maximum size.
func long(t testing.TB, upstream string, n int) []lockfile.Tool {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	for i := len(made.of[upstream]); i < n; i++ {
		made.of[upstream] = append(made.of[upstream], of(t, upstream, fmt.Sprintf(`{"name":"t%d","inputSchema":{"minimum":0.%s}}`, i, strings.Repeat("1", 250<<10))))
	}
	return slices.Clone(made.of[upstream][:n])
}

// huge returns a lock that exceeds the file limit.
func huge(t testing.TB) *lockfile.Lock {
	return new(lockfile.Lock).WithTools("known", long(t, "known", 263)...)
}

func TestEncodedSize(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	for name, lock := range map[string]*lockfile.Lock{"empty": new(lockfile.Lock), "shown": shown(t), "long": new(lockfile.Lock).WithTools("lab", long(t, "lab", 2)...)} {
		file := lock.Encode()
		read, err := lockfile.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		if lock.EncodedSize() != len(file) || read.EncodedSize() != len(file) {
			t.Errorf("%s: the file has %d bytes, EncodedSize is %d and %d after parsing", name, len(file), lock.EncodedSize(), read.EncodedSize())
		}
	}
	lock := huge(t)
	if n := testing.AllocsPerRun(1, func() { lock.EncodedSize() }); n > 10 {
		t.Errorf("the length of 263 tools allocates %.0f times", n)
	}
}

func TestWithMissing_size(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	before := new(lockfile.Lock).WithTools("known", long(t, "known", 200)...)
	kept := new(lockfile.Lock).
		WithTools("a-long", long(t, "a-long", 63)...).
		WithTools("known", of(t, "known", `{"name":"other"}`)).
		WithTools("little", of(t, "little", `{"name":"a"}`)).
		WithTools("longer", long(t, "longer", 64)...).
		WithTools("z", of(t, "z", `{"name":"a"}`))
	got := before.WithMissing(kept)
	if diff := cmp.Diff([]string{"known", "little", "z"}, got.Upstreams()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(contents(before)["known"], got.Tools("known")); diff != "" {
		t.Error("the cached offer differs")
	}
	if again := got.WithMissing(kept); again != got {
		t.Errorf("a full lock changes to %v", again.Upstreams())
	}
	if got := new(lockfile.Lock).WithTools("known", long(t, "known", 100)...).WithMissing(kept).Upstreams(); !cmp.Equal(got, []string{"a-long", "known", "little", "longer", "z"}) {
		t.Errorf("with enough capacity: %v", got)
	}
}

// testdata/before/mcpd.lock was written by an earlier version. Never regenerate it.
func TestParse_previousVersion(t *testing.T) {
	file, err := os.ReadFile("testdata/before/mcpd.lock")
	if err != nil {
		t.Fatal(err)
	}
	read, err := lockfile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	want := shown(t).WithTools("raw", of(t, "raw", `{"name":"h","description":"hidden \u200b"}`).AsRaw())
	if diff := cmp.Diff(contents(want), contents(read)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Only the comments at its start have changed since.
	const version = "\nmcpd.lock 1\n"
	_, old, _ := bytes.Cut(file, []byte(version))
	comments, again, found := bytes.Cut(read.Encode(), []byte(version))
	if !found || !bytes.Equal(again, old) {
		t.Errorf("it is written as\n%s", cmp.Diff(string(old), string(again)))
	}
	for line := range strings.Lines(string(comments)) {
		if !strings.HasPrefix(line, "# ") {
			t.Errorf("the line %q is not a comment", line)
		}
	}
	if got, want := fmt.Sprintf("%x", read.Hash()), "964553ecb9588d69d08e4b2229617690c4eff6c62b91339fd9816953db7b3be3"; got != want {
		t.Errorf("its hash is %s, was %s", got, want)
	}
}
