package lockfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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

// of reads an entry of any upstream.
func of(t testing.TB, upstream, entry string) lockfile.Tool {
	t.Helper()
	read, err := lockfile.Of(upstream, json.RawMessage(entry))
	if err != nil {
		t.Fatalf("%.200s: %v", entry, err)
	}
	return read
}

// shown is the lock of testdata/mcpd.lock.
func shown(t testing.TB) *lockfile.Lock {
	return new(lockfile.Lock).
		Pin("everything",
			of(t, "everything", `{"name":"echo","description":"Echoes back the input","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"Message to echo"}},"required":["message"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}}`),
			of(t, "everything", `{"name":"a\u202e\" b","title":"","description":"\u001b[2JHidden\u200b.\n\nA long line that goes on and on, and is wrapped somewhere before it is as wide as that of a terminal; 漢字。次","annotations":{"idempotentHint":true,"x":[[],{},[1.50,-2e40,null]]},"outputSchema":{"A sentence. As a name":1}}`)).
		Pin("empty").
		Pin("an \"upstream\"", of(t, "an \"upstream\"", `{"name":"t"}`))
}

func TestTheFileOfALock(t *testing.T) {
	file := shown(t).Encode()
	golden(t, "mcpd.lock", string(file))
	checkShown(t, string(file))
	read, err := lockfile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(shown(t)), contents(read)); diff != "" {
		t.Errorf("another lock is read from it (-want +got)\n%s", diff)
	}
	if again := read.Encode(); !bytes.Equal(again, file) {
		t.Errorf("its file is another one:\n%s", cmp.Diff(string(file), string(again)))
	}
}

// contents returns what a lock holds.
func contents(l *lockfile.Lock) map[string][]lockfile.Tool {
	held := map[string][]lockfile.Tool{}
	for _, upstream := range l.Upstreams() {
		held[upstream] = l.Tools(upstream)
	}
	return held
}

func TestAnEmptyLockHasAFile(t *testing.T) {
	read, err := lockfile.Parse(new(lockfile.Lock).Encode())
	if err != nil || len(read.Upstreams()) > 0 {
		t.Errorf("it holds %v, %v", read, err)
	}
}

// TestBlocksMayStandInAnyOrder as a merge leaves them, and with the line ends of Windows.
func TestBlocksMayStandInAnyOrder(t *testing.T) {
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

func TestMistakesInAFileAreNamedWithTheirLine(t *testing.T) {
	file := string(new(lockfile.Lock).Pin("github", tool(t, `{"name":"a","description":"Reads. Writes.","title":"\"\\"}`)).Encode())
	block := file[strings.Index(file, "tool "):]
	hash := block[strings.Index(block, "sha256 ")+7:][:64]
	edited := func(old, new string) string {
		if strings.Count(file, old) != 1 {
			t.Fatalf("%q is not once in\n%s", old, file)
		}
		return strings.Replace(file, old, new, 1)
	}
	const mixed = `line 8: tool "github" "a": the definition does not fit its sha256: it was edited by hand, or mixed by a merge`
	for _, row := range []struct{ name, file, want string }{
		{"nothing", "", `the file has no line "mcpd.lock 1"`},
		{"no version", "# x\n\nupstream \"a\"\n", `line 3: want "mcpd.lock 1", which is the version that this mcpd reads`},
		{"another version", edited("mcpd.lock 1", "mcpd.lock 2"), `line 4: want "mcpd.lock 1", which is the version that this mcpd reads`},
		{"another text", edited(`" Writes."`, `" Reads."`), mixed},
		{"a line less", edited("\n      \" Writes.\"", ""), mixed},
		{"another hash", edited(hash, strings.Repeat("0", 64)), mixed},
		{"a member that is no part", edited(`  "name"`, `  "extra": 1,`+"\n"+`  "name"`), mixed},
		{"another name", edited(`"github" "a"`, `"github" "b"`), `line 8: tool "github" "b": the definition is that of another name`},
		{"no name", edited(`"github" "a"`, `"github"`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"a name without an end", edited(`"github" "a"`, `"github" "a\"`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"a name and more", edited(`"github" "a"`, `"github" "a" x`), `line 8: want tool UPSTREAM NAME, each name a JSON string`},
		{"no hash", edited("sha256 "+hash+"\n", ""), `line 8: tool "github" "a": want sha256 and the hash of the definition in the next line`},
		{"no definition", file[:strings.Index(file, "{\n")], `line 8: tool "github" "a": want { and the definition in the line behind its sha256`},
		{"an end that is missing", strings.TrimSuffix(file, "}\n"), `line 8: tool "github" "a": the definition has no end`},
		{"an end that is missing before another tool", strings.TrimSuffix(file, "}\n") + block, `line 8: tool "github" "a": the definition has no end before line 15`},
		{"no JSON", edited(`"name": "a"`, `"name" "a"`), `line 8: tool "github" "a": read definition: the JSON text has something else where a colon should be (at byte 42)`},
		{"an escape over two lines", edited(`"\"\\"`, `"\"\`+"\n"+`\"`), `line 8: tool "github" "a": the definition has no end before line 15`},
		{"an escape in two strings", edited(`"\"\\"`, `"\"\"`+"\n"+`    "\"`), `line 8: tool "github" "a": read definition: the JSON text has something else where a comma or a closing brace should be (at byte 64)`},
		{"a name twice", edited(`"name": "a"`, `"name": "a", "name": "a"`), `line 8: tool "github" "a": read definition: an object has two members of the same name (at byte 48)`},
		{"a part of another type", edited(`"name": "a"`, `"name": 1`), `line 8: tool "github" "a": read definition: the name is no text`},
		{"a tool twice", file + block, `line 16: tool "github" "a": it stands in line 8, too; remove one of the two`},
		{"a conflict", edited("tool ", "<<<<<<< HEAD\ntool "), `line 8: a conflict of a merge is not resolved`},
		{"a conflict in a definition", edited("  \"name\"", "=======\n  \"name\""), `line 13: tool "github" "a": a conflict of a merge is not resolved`},
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

func TestLocksThatAreChangedStayAsTheyWere(t *testing.T) {
	a, b, c := tool(t, `{"name":"a"}`), tool(t, `{"name":"b"}`), tool(t, `{"name":"a","title":"x"}`)
	first := new(lockfile.Lock).Pin("github", b, a, of(t, "gitlab", `{"name":"z"}`))
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

// FuzzParse: what is read has a file, from which the same is read.
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
