package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// logAt writes a strict log in a new directory, with a record at each of these seconds.
func logAt(t testing.TB, size int64, mode Mode, seconds ...int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	second := 0
	l := opened(t, Options{Path: path, Mode: mode, MaxSize: size, Keep: Retention{Files: 1000}, Now: func() time.Time {
		return clock().Add(time.Duration(second) * time.Second)
	}})
	for i, s := range seconds {
		second = s
		r := refund()
		r.Call = fmt.Sprint(i)
		if err := l.Outcome(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// merged returns the lines that Merge writes.
func merged(t testing.TB, o MergeOptions, paths ...string) ([]string, Merged) {
	t.Helper()
	var b bytes.Buffer
	m, err := Merge(&b, paths, o)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	return lines[:len(lines)-1], m
}

// origins returns the index of the log and the number of each record.
func origins(t testing.TB, lines []string, paths ...string) (all []string) {
	t.Helper()
	for _, line := range lines {
		var read struct {
			Log string
			Seq int
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%d", slices.Index(paths, read.Log), read.Seq))
	}
	return all
}

func TestMerge_ordersByTime(t *testing.T) {
	a := logAt(t, 1<<20, Strict, 1, 4, 4, 9)
	b := logAt(t, 1000, Strict, 2, 4, 3, 8) // rotated files, and a clock that was set back
	empty := logAt(t, 1<<20, Strict)
	lines, m := merged(t, MergeOptions{}, a, b, empty)
	want := []string{"0:1", "1:1", "0:2", "0:3", "1:2", "1:3", "1:4", "0:4"}
	if got := origins(t, lines, a, b, empty); !slices.Equal(got, want) || m.Written != 8 || m.Reports[1].Files < 2 {
		t.Errorf("got %v, want %v; %+v", got, want, m)
	}
	text, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if want := fmt.Sprintf("{%q:%q,%s\n", "log", a, first[1:]); lines[0] != want {
		t.Errorf("got %s, want %s", lines[0], want)
	}
	lines, _ = merged(t, MergeOptions{Range: TimeRange{Since: clock().Add(4 * time.Second), Until: clock().Add(9 * time.Second)}}, b, a)
	if got, want := origins(t, lines, a, b), []string{"1:2", "0:2", "0:3", "1:4"}; !slices.Equal(got, want) {
		t.Errorf("a range: got %v, want %v", got, want)
	}
}

func TestMerge_brokenLog(t *testing.T) {
	for _, row := range []struct {
		name    string
		change  func([][]byte) [][]byte
		finding string
		want    []string // with broken logs
		skipped int
	}{
		{"changed", func(l [][]byte) [][]byte {
			l[1] = bytes.Replace(l[1], []byte("refund"), []byte("refuse"), 1)
			return l
		}, "audit.jsonl:2: the line was changed, or was not written with this key", []string{"0:1", "1:1", "0:2", "1:2", "0:3"}, 0},
		{"removed", func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) }, "audit.jsonl:2: record 2 is missing before this line", []string{"0:1", "1:1", "1:2", "0:3"}, 0},
		{"inserted", func(l [][]byte) [][]byte {
			forged := fmt.Appendf(nil, `{"seq":9,"time":%q,"log":"x","log_broken":null}`+"\n", clock().Format(time.RFC3339))
			return slices.Insert(l, 1, forged, []byte("no record\n"))
		}, "audit.jsonl:2: the line was changed, or was not written with this key", []string{"0:1", "1:1", "0:2", "1:2", "0:3"}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			broken, good := logAt(t, 1<<20, Strict, 1, 3, 5), logAt(t, 1<<20, Strict, 2, 4)
			edit(t, broken, row.change)
			lines, m := merged(t, MergeOptions{}, broken, good)
			if len(lines) > 0 || !m.Broken() || !slices.Contains(found(m.Reports[0]), row.finding) {
				t.Errorf("%d lines, findings %q", len(lines), found(m.Reports[0]))
			}
			lines, m = merged(t, MergeOptions{Broken: true}, broken, good)
			if got := origins(t, lines, broken, good); !slices.Equal(got, row.want) || m.Skipped != row.skipped {
				t.Errorf("got %v and %d skipped", got, m.Skipped)
			}
			for _, line := range lines {
				if marked := strings.Contains(line, `,"log_broken":true,"seq":`); marked != strings.Contains(line, broken) {
					t.Errorf("a record of the wrong log is marked: %s", line)
				}
			}
		})
	}
}

func TestMerge_missingLog(t *testing.T) {
	removed := logAt(t, 1<<20, Strict, 1)
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	if lines, m := merged(t, MergeOptions{Broken: true}, removed); len(lines) > 0 || !m.Broken() {
		t.Errorf("%q, %+v", lines, m)
	}
	if _, err := Merge(io.Discard, []string{filepath.Join(t.TempDir(), "gone.jsonl")}, MergeOptions{}); err == nil {
		t.Error("a log without files has no error")
	}
}

// changer changes a log at the first write of the merged records.
type changer struct {
	io.Writer
	change func()
}

func (c *changer) Write(p []byte) (int, error) {
	c.change()
	c.change = func() {}
	return c.Writer.Write(p)
}

func TestMerge_changeAfterVerification(t *testing.T) {
	a, b := logAt(t, 1<<20, Strict, 1), logAt(t, 500, Strict, 2, 3, 4)
	var out bytes.Buffer
	_, err := Merge(&changer{&out, func() {
		edit(t, b, func(l [][]byte) [][]byte {
			l[0] = bytes.Replace(l[0], []byte("refund"), []byte("refuse"), 1)
			return l
		})
	}}, []string{a, b}, MergeOptions{})
	if err == nil || !strings.Contains(err.Error(), "changed after its verification") || strings.Contains(out.String(), "refuse") {
		t.Errorf("error %v, output %s", err, out.String())
	}
}

func TestMerge_growingLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := opened(t, Options{Path: path, Mode: Strict, Now: clock})
	write := func() {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
	}
	write()
	write()
	var out bytes.Buffer
	m, err := Merge(&changer{&out, write}, []string{path}, MergeOptions{})
	if err != nil || m.Written != 2 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v, %d records", err, m.Written)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// sortChecker counts lines, and reports a time that is before the previous one.
type sortChecker struct {
	t     *testing.T
	lines int
	last  string
}

func (s *sortChecker) Write(line []byte) (int, error) {
	_, rest, _ := bytes.Cut(line, []byte(`","time":"`))
	at, _, _ := strings.Cut(string(rest[:40]), `"`)
	if at < s.last {
		s.t.Errorf("%s after %s", at, s.last)
	}
	s.lines, s.last = s.lines+1, at
	return len(line), nil
}

func TestMerge_manyRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100,000 records")
	}
	const logs, records = 4, 25_000
	var paths []string
	for n := range logs {
		var seconds []int
		for i := range records {
			seconds = append(seconds, i*logs+(n*7)%logs)
		}
		paths = append(paths, logAt(t, 4<<20, Relaxed, seconds...))
	}
	out := &sortChecker{t: t}
	m, err := Merge(out, paths, MergeOptions{})
	if err != nil || m.Broken() || out.lines < logs*records || m.Written != uint64(out.lines) {
		t.Errorf("%v, %d lines", err, out.lines)
	}
}

func TestLogOf_rotatedFile(t *testing.T) {
	path := logAt(t, 500, Strict, 1, 2, 3)
	for file, want := range map[string]string{
		path: path, segmentPath(path, 1): path, headPath(path): headPath(path),
		filepath.Join(filepath.Dir(path), "x-00000000000000000001.jsonl"): filepath.Join(filepath.Dir(path), "x-00000000000000000001.jsonl"),
	} {
		if got := LogOf(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}
