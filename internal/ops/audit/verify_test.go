package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written returns the path of a strict log with this number of records, in files of at
// least size bytes.
func written(t testing.TB, records int, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := opened(t, Options{Path: path, Mode: Strict, MaxSize: size, Now: clock, Keep: Retention{Files: 1000}})
	for i := range records {
		r := refund()
		r.Call = strconv.Itoa(i)
		if err := l.Outcome(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// verified returns the report on a log.
func verified(t testing.TB, path string) *Report {
	t.Helper()
	r, err := Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found returns the findings with base names of the files.
func found(r *Report) []string {
	all := []string{}
	for _, f := range r.Findings {
		f.File = filepath.Base(f.File)
		all = append(all, f.String())
	}
	return all
}

func TestVerify_rotatedFiles(t *testing.T) {
	r := verified(t, written(t, 20, 2000))
	if len(r.Findings) > 0 || r.Records != 20 || r.First != 1 || r.Last != 20 || r.Files < 5 {
		t.Errorf("%+v", r)
	}
}

// edit changes the lines of a file.
func edit(t *testing.T, path string, change func([][]byte) [][]byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := change(bytes.SplitAfter(text, []byte("\n")))
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerify_changes(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func([][]byte) [][]byte
		want   []string
	}{
		{"nothing", func(l [][]byte) [][]byte { return l }, []string{}},
		{"changed byte", func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte("alice"), []byte("alicf"), 1)
			return l
		}, []string{"audit.jsonl:3: the line was changed, or was not written with this key"}},
		{"two removed after a changed line", func(l [][]byte) [][]byte {
			l[0] = bytes.Replace(l[0], []byte("alice"), []byte("alicf"), 1)
			return append(l[:1:1], l[3:]...)
		}, []string{"audit.jsonl:1: the line was changed, or was not written with this key", "audit.jsonl:2: 2 of the records 1 to 3 are missing before this line"}},
		{"one removed after a changed line", func(l [][]byte) [][]byte {
			l[1] = bytes.Replace(l[1], []byte("alice"), []byte("alicf"), 1)
			return append(l[:2:2], l[3:]...)
		}, []string{"audit.jsonl:2: the line was changed, or was not written with this key", "audit.jsonl:3: 1 of the records 2 to 3 is missing before this line"}},
		{"changed last line", func(l [][]byte) [][]byte {
			l[4] = bytes.Replace(l[4], []byte("alice"), []byte("alicf"), 1)
			return l
		}, []string{"audit.jsonl:5: the line was changed, or was not written with this key"}},
		{"truncated after a changed line", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte("alice"), []byte("alicf"), 1)
			return l[:4]
		}, []string{"audit.jsonl:4: the line was changed, or was not written with this key", "audit.jsonl: the end was truncated: 1 of the records 4 to 5 is missing"}},
		{"removed line", func(l [][]byte) [][]byte { return append(l[:2:2], l[3:]...) },
			[]string{"audit.jsonl:3: record 3 is missing before this line"}},
		{"two removed at the start", func(l [][]byte) [][]byte { return l[2:] },
			[]string{"audit.jsonl:1: records 1 to 2 are missing before this line"}},
		{"swapped lines", func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, []string{
			"audit.jsonl:2: record 2 is missing before this line",
			"audit.jsonl:3: record 2 is out of order: it follows record 3",
			"audit.jsonl:4: record 3 is missing before this line",
		}},
		{"duplicate line", func(l [][]byte) [][]byte { return append(l[:2:2], l[1:]...) },
			[]string{"audit.jsonl:3: record 2 is out of order: it follows record 2"}},
		{"inserted line", func(l [][]byte) [][]byte {
			return append(append(l[:2:2], []byte("{}\n")), l[2:]...)
		}, []string{"audit.jsonl:3: the line was changed, or was not written with this key"}},
		{"truncated", func(l [][]byte) [][]byte { return l[:3] }, []string{"audit.jsonl: the end was truncated: records 4 to 5 are missing"}},
		{"emptied", func([][]byte) [][]byte { return nil }, []string{"audit.jsonl: the end was truncated: records 1 to 5 are missing"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, 5, 0)
			edit(t, path, row.change)
			if diff := cmp.Diff(row.want, found(verified(t, path))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVerify_missingFile(t *testing.T) {
	for _, row := range []struct {
		name string
		at   int
		want string
	}{
		{"oldest", 0, "records 1 to 2 are missing before this line"},
		{"middle", 2, "records 5 to 6 are missing before this line"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, 10, 2000)
			old, err := listSegments(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(old[row.at].path); err != nil {
				t.Fatal(err)
			}
			want := []string{fmt.Sprintf("%s:1: %s", filepath.Base(old[row.at+1].path), row.want)}
			if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVerify_headMissingOrForged(t *testing.T) {
	path := written(t, 3, 0)
	text, err := os.ReadFile(headPath(path))
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(text, []byte(`"seq":3`), []byte(`"seq":2`), 1)
	if err := os.WriteFile(headPath(path), forged, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"audit.jsonl.head: the head was not written with this key"}, found(verified(t, path))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := os.Remove(headPath(path)); err != nil {
		t.Fatal(err)
	}
	want := []string{"audit.jsonl.head: the head is missing, so a truncated end cannot be detected"}
	if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Changes, removes and inserts random bytes.
func TestVerify_randomEdits(t *testing.T) {
	path := written(t, 10, 0)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 20260728
	random := rand.New(rand.NewPCG(seed, seed))
	edits := 400
	if os.Getenv("MCPD_LONG") != "" {
		edits = 5_000
	}
	for i := range edits {
		at := random.IntN(len(good))
		bad := bytes.Clone(good)
		switch random.IntN(3) {
		case 0:
			bad[at] ^= byte(1 + random.IntN(255))
		case 1:
			bad = append(bad[:at], good[min(len(good), at+1+random.IntN(50)):]...)
		case 2:
			bad = append(append(bad[:at:at], byte(random.IntN(256))), good[at:]...)
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, path); len(r.Findings) == 0 {
			t.Fatalf("edit %d at byte %d of %d not detected", i, at, len(good))
		}
	}
}
