package lockfile_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

var update = flag.Bool("update", false, "write the goldens anew")

// golden compares a result with a golden file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// TestDiff shows the change between old.json and new.json in each archive of testdata/diff. One
// of them may be missing.
func TestDiff(t *testing.T) {
	archives, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lock := new(lockfile.Lock).WithTools("github")
			var listed []lockfile.Tool
			for _, f := range archive.Files {
				switch f.Name {
				case "old.json":
					lock = lock.WithTools("github", tool(t, string(f.Data)))
				case "new.json":
					listed = append(listed, tool(t, string(f.Data)))
				}
			}
			var got bytes.Buffer
			for _, c := range lock.Check("github", listed, lockfile.FirstUse).Changes {
				fmt.Fprintf(&got, "%s %s %q\n%s", c.Kind, c.Upstream, c.Name, c.Diff())
			}
			checkShown(t, got.String())
			files := archive.Files[:len(archive.Files)-1]
			want := archive.Files[len(files)]
			if want.Name != "want" {
				t.Fatal("the last file of the archive must be want")
			}
			if *update {
				archive.Files = append(files, txtar.File{Name: "want", Data: got.Bytes()})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkShown fails if a text has a control character or an invisible one.
func checkShown(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) {
			t.Fatalf("%U is not escaped in\n%q", r, text)
		}
	}
}

// described returns a tool with a description.
func described(t *testing.T, description string) lockfile.Tool {
	t.Helper()
	return tool(t, fmt.Sprintf(`{"name":"a","description":%s}`, mustJSON(t, description)))
}

func TestDiff_truncated(t *testing.T) {
	for _, row := range []struct{ sentences, left int }{{1995, 0}, {1996, 0}, {1997, 1}, {10_000, 8004}} {
		text := strings.Repeat("No. ", row.sentences-1) + "Yes."
		c := lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: "a", New: described(t, text)}
		shown := c.Diff()
		last := shown[strings.LastIndex(strings.TrimSuffix(shown, "\n"), "\n")+1:]
		want := "+}\n"
		if row.left > 0 {
			want = fmt.Sprintf("… and %d more lines, not shown; accepting the change accepts them too\n", row.left)
		}
		if c.Complete() != (row.left == 0) {
			t.Errorf("%d sentences: complete is %t", row.sentences, c.Complete())
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Errorf("the end of %d sentences (-want +got)\n%s", row.sentences, diff)
		}
	}
}

func TestDiff_longNumbers(t *testing.T) {
	number := func(last string) lockfile.Tool {
		return tool(t, `{"name":"a","inputSchema":{"minimum":0.`+strings.Repeat("7", 200_000)+last+`}}`)
	}
	c := lockfile.Change{Kind: lockfile.Changed, Upstream: "github", Name: "a", Old: number("1"), New: number("2")}
	shown := c.Diff()
	if strings.Count(shown, "… and 199619 more bytes\n") != 2 || len(shown) > 2000 || c.Complete() {
		t.Errorf("it shows\n%.3000s", shown)
	}
}

func TestDiff_lineLength(t *testing.T) {
	for _, piece := range []string{"x", " ", "\n", ". ", "é", "\u202e", "\U000e0041", "\u0301", "漢", "\\", "a ", "\t"} {
		text := strings.Repeat(piece, 3000)
		entry := fmt.Sprintf(`{"name":"a","description":%s,"inputSchema":{%s:{%s:[%s]}}}`, mustJSON(t, text), mustJSON(t, text), mustJSON(t, text), mustJSON(t, text))
		c := lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: "a", New: tool(t, entry)}
		for line := range strings.Lines(c.Diff()) {
			if n := utf8.RuneCountInString(line); n > 220 {
				t.Errorf("%q: a line has %d characters", piece, n)
			}
		}
		checkShown(t, c.Diff())
	}
}

// The tools for Check: a as accepted, and changed.
const (
	accepted  = `{"name":"a","description":"Reads."}`
	otherwise = `{"name":"a","description":"Writes."}`
	third     = `{"name":"a","description":"Zips."}`
	another   = `{"name":"b"}`
)

func TestCheck(t *testing.T) {
	a, x, y, b := tool(t, accepted), tool(t, otherwise), tool(t, third), tool(t, another)
	none := new(lockfile.Lock)
	changed := func(kind lockfile.ChangeKind, old, new lockfile.Tool) lockfile.Change {
		name := old.Name() + new.Name()
		return lockfile.Change{Kind: kind, Upstream: "github", Name: name[:1], Old: old, New: new}
	}
	type tools = []lockfile.Tool
	type changes = []lockfile.Change
	nothing := lockfile.Tool{}
	for _, row := range []struct {
		name   string
		lock   *lockfile.Lock
		listed tools
		mode   lockfile.Mode
		want   lockfile.CheckResult
	}{
		{"what an upstream lists first is taken in", none, tools{b, a}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{a, b}, FirstUse: true}},
		{"but not where everything is asked for", none, tools{a}, lockfile.Strict, lockfile.CheckResult{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"an upstream that lists nothing is known from then on", none, nil, lockfile.FirstUse, lockfile.CheckResult{FirstUse: true}},
		{"and what it lists then is not taken in", none.WithTools("github"), tools{a}, lockfile.FirstUse, lockfile.CheckResult{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"nor when it has lost its last tool", none.WithTools("github", a).Accept(changed(lockfile.Removed, a, nothing)), tools{a}, lockfile.FirstUse, lockfile.CheckResult{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"the pins of one upstream say nothing of another", none.WithTools("gitlab"), tools{a}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{a}, FirstUse: true}},
		{"what was accepted is served", none.WithTools("github", a, b), tools{b, a}, lockfile.Strict, lockfile.CheckResult{Served: tools{a, b}}},
		{"what has changed is not", none.WithTools("github", a, b), tools{x, b}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{b}, Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"until it is accepted", none.WithTools("github", a, b).Accept(changed(lockfile.Changed, a, x)), tools{x, b}, lockfile.Strict, lockfile.CheckResult{Served: tools{x, b}}},
		{"what is gone is told of", none.WithTools("github", a, b), tools{a}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{a}, Changes: changes{changed(lockfile.Removed, b, nothing)}}},
		{"the first one, too", none.WithTools("github", a, b), tools{b}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{b}, Changes: changes{changed(lockfile.Removed, a, nothing)}}},
		{"all", none.WithTools("github", a, b), nil, lockfile.FirstUse, lockfile.CheckResult{Changes: changes{changed(lockfile.Removed, a, nothing), changed(lockfile.Removed, b, nothing)}}},
		{"what is listed twice is served once", none.WithTools("github", a), tools{a, a}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{a}}},
		{"one name of two definitions is not served", none.WithTools("github", a), tools{x, a}, lockfile.FirstUse, lockfile.CheckResult{Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"nor when none of them is known", none.WithTools("github", a), tools{y, x}, lockfile.FirstUse, lockfile.CheckResult{Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"nor at first", none, tools{x, a, b}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{b}, Changes: changes{changed(lockfile.Added, nothing, a)}, FirstUse: true}},
		{"tools of others are none", none.WithTools("github", a), tools{of(t, "gitlab", accepted), a}, lockfile.FirstUse, lockfile.CheckResult{Served: tools{a}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := row.lock.Check("github", row.listed, row.mode)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// After accepting all changes everything is served, in any order and from any lock.
func TestAccept_all(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 4))
		some := func() (list []lockfile.Tool) {
			for _, name := range random.Perm(8)[:random.IntN(8)] {
				list = append(list, tool(t, mustJSON(t, map[string]any{"name": string(rune('a' + name)), "title": string(rune('0' + random.IntN(3)))})))
			}
			return list
		}
		mode := lockfile.Mode(random.IntN(2))
		lock, listed := new(lockfile.Lock).WithTools("github", some()...), some()
		before := lock.Check("github", listed, mode)
		after := lock.Accept(before.Changes...).Check("github", listed, mode)
		if len(after.Changes) > 0 || len(after.Served) != len(listed) {
			t.Fatalf("seed %d: %+v", seed, after)
		}
		random.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
		if diff := cmp.Diff(before, lock.Check("github", listed, mode)); diff != "" {
			t.Fatalf("seed %d: in another order (-want +got)\n%s", seed, diff)
		}
	}
}
