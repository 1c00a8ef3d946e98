package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// removed removes a log, its rotated files and its head, but not the key.
func removed(t *testing.T, path string) {
	t.Helper()
	old, err := listSegments(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(old, segment{path: path}, segment{path: headPath(path)}) {
		// A process killed during rotation leaves no current file.
		if err := os.Remove(name.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// bareKey rewrites the key file in the format of earlier versions and operators.
func bareKey(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	text, err := os.ReadFile(keyPath(path))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if err := os.Remove(keyPath(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyPath(path), append(line, '\n'), mode); err != nil {
		t.Fatal(err)
	}
}

const gapLine = "lines or the head were missing when the log was opened here"

func TestMark_logAndHeadRemoved(t *testing.T) {
	for _, row := range []struct {
		name    string
		records int
		size    int64
		event   string
		missing string
		first   string
	}{
		{"without records", 0, 0,
			`audit.gap {"reason":"the key existed without a log or a head"}`, "", "1"},
		{"with records", 5, 0,
			`audit.gap {"from":"1","reason":"the log ended before the record in the mark of its key","to":"5"}`,
			"audit.jsonl: the end was truncated: records 1 to 5 are missing", "6"},
		{"with rotated files", 10, 2000,
			`audit.gap {"from":"1","reason":"the log ended before the record in the mark of its key","to":"10"}`,
			"audit.jsonl: the end was truncated: records 1 to 10 are missing", "11"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, row.records, row.size)
			removed(t, path)
			want := []string{
				"audit.jsonl.head: the head is missing, so a truncated end cannot be detected",
				"audit.jsonl: the log is missing, but its key has a mark",
			}
			if row.missing != "" {
				want = append(want, row.missing)
			}
			if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
				t.Errorf("before a start (-want +got)\n%s", diff)
			}
			for range 2 {
				reopened(t, Options{Path: path, Mode: Strict})
				if diff := cmp.Diff([]string{"audit.jsonl:1: " + gapLine}, found(verified(t, path))); diff != "" {
					t.Errorf("after a start (-want +got)\n%s", diff)
				}
				if diff := cmp.Diff([]string{row.event}, told(t, path)); diff != "" {
					t.Errorf("events (-want +got)\n%s", diff)
				}
			}
		})
	}
}

// Restores an older log together with its head.
func TestMark_logAndHeadRolledBack(t *testing.T) {
	path := written(t, 3, 0)
	older := map[string][]byte{}
	for _, name := range []string{path, headPath(path)} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		older[name] = text
	}
	l := opened(t, Options{Path: path, Mode: Strict})
	for range 4 {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range older {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"audit.jsonl: the end was truncated: records 4 to 7 are missing"}, found(verified(t, path))); diff != "" {
		t.Errorf("before a start (-want +got)\n%s", diff)
	}
	reopened(t, Options{Path: path})
	want := []string{"audit.jsonl:4: records 4 to 7 are missing before this line", "audit.jsonl:4: " + gapLine}
	if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
		t.Errorf("after a start (-want +got)\n%s", diff)
	}
}

func TestMark_freshKeyIsNoGap(t *testing.T) {
	for _, mode := range []Mode{Relaxed, Strict} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		for range 3 {
			reopened(t, Options{Path: path, Mode: mode})
		}
		if r := verified(t, path); len(r.Findings) > 0 || r.Records > 0 {
			t.Errorf("%s: %+v", mode, r)
		}
	}
	// A process was killed after it created the key.
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := makeKey(osDisk{}, path); err != nil {
		t.Fatal(err)
	}
	reopened(t, Options{Path: path})
	if r := verified(t, path); len(r.Findings) > 0 || r.Records > 0 {
		t.Errorf("a killed start: %+v", r)
	}
}

func TestMark_olderKeyFile(t *testing.T) {
	path := written(t, 3, 0)
	bareKey(t, path, 0o600)
	if r := verified(t, path); len(r.Findings) > 0 {
		t.Error(found(r))
	}
	reopened(t, Options{Path: path})
	if r := verified(t, path); len(r.Findings) > 0 || r.Last != 3 {
		t.Errorf("%+v", r)
	}
	removed(t, path)
	if r := verified(t, path); len(r.Findings) != 3 {
		t.Errorf("the key was not upgraded: %v", found(r))
	}
	bareKey(t, path, 0o600)
	if r := verified(t, path); len(r.Findings) != 2 {
		t.Errorf("a key without a log and a head: %v", found(r))
	}
	reopened(t, Options{Path: path})
	if diff := cmp.Diff([]string{"audit.jsonl:1: " + gapLine}, found(verified(t, path))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Starts with a read-only key of the operator.
func TestMark_readOnlyKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := []byte(strings.Repeat("0123456789abcdef", 4) + "\n")
	if err := os.WriteFile(keyPath(path), key, 0o400); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for range 2 {
		l := opened(t, Options{Path: path, Mode: Strict, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		for range 3 {
			if err := l.Outcome(refund()); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(said.String(), "level=WARN"); n != 1 || !strings.Contains(said.String(), "audit key is read-only") {
			t.Errorf("%d warnings:\n%s", n, &said)
		}
		said.Reset()
	}
	if r := verified(t, path); len(r.Findings) > 0 || r.Last != 6 {
		t.Errorf("%+v", r)
	}
	if now, err := os.ReadFile(keyPath(path)); err != nil || !bytes.Equal(now, key) {
		t.Errorf("the key was changed: %s, %v", now, err)
	}
	if _, err := os.Stat(keyPath(path) + ".new"); err == nil {
		t.Error("a copy of the key remains")
	}
}

func TestMark_keyFileEdited(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(string) string
	}{
		{"smaller number", func(text string) string { return strings.Replace(text, `"signed":3`, `"signed":2`, 1) }},
		{"no code", func(text string) string { return text[:2*keySize+1] + `{"signed":0}` + "\n" }},
		{"another key", func(text string) string { return strings.Repeat("ab", keySize) + text[2*keySize:] }},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, 3, 0)
			text, err := os.ReadFile(keyPath(path))
			if err != nil {
				t.Fatal(err)
			}
			changed := row.change(string(text))
			if changed == string(text) {
				t.Fatalf("no change in %s", text)
			}
			if err := os.WriteFile(keyPath(path), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			r := verified(t, path)
			if !strings.Contains(strings.Join(found(r), "\n"), "audit.jsonl.key: the mark was not written with this key") {
				t.Error(found(r))
			}
		})
	}
}

// Another file exists at the temporary path of the key.
func TestMark_noCopyOfTheKeyForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	planted := keyPath(path) + ".new"
	if err := os.WriteFile(planted, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(planted)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	reopened(t, Options{Path: path})
	if info, err := open.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("the key was written into the existing file: %v, %v", info, err)
	}
}

// Kills a writer process and removes its log. Before the removal log: intact;
// after it, the acknowledged records are reported missing.
func TestMark_killed(t *testing.T) {
	kills := 10
	if os.Getenv("MCPD_LONG") != "" {
		kills = 200
	}
	for kill := range kills {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		random := rand.New(rand.NewPCG(uint64(kill), 54))
		for range 1 + random.IntN(3) {
			killOnce(t, path, random.IntN(40), map[string]bool{})
		}
		if r := verified(t, path); len(r.Findings) > 0 {
			t.Fatalf("kill %d: %v", kill, found(r))
		}
		removed(t, path)
		if r := verified(t, path); len(r.Findings) < 2 {
			t.Fatalf("kill %d: no finding: %+v", kill, r)
		}
		reopened(t, Options{Path: path})
		if r := verified(t, path); len(r.Findings) == 0 {
			t.Fatalf("kill %d: no finding after a start: %+v", kill, r)
		}
	}
}

// The mark is updated while log: open.
func TestMark_rotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := opened(t, Options{Path: path, Mode: Strict, MaxSize: 2000})
	for range 10 {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
	}
	k, err := readKey(osDisk{}, path)
	if err != nil || k.last.seq == 0 || k.last.seq > 10 {
		t.Errorf("the mark has record %d of 10, %v", k.last.seq, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	k, err = readKey(osDisk{}, path)
	if err != nil || k.last.seq != 10 {
		t.Errorf("after Close the mark has record %d of 10, %v", k.last.seq, err)
	}
	if info, err := os.Stat(keyPath(path)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file mode %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(keyPath(path)); err != nil || !strings.HasPrefix(string(text), hex.EncodeToString(k.key)+"\n") {
		t.Errorf("the key was changed, %v", err)
	}
}
