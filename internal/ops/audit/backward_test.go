package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callsBefore returns the numbers of the calls before a record, newest first.
func callsBefore(t *testing.T, path string, seq uint64, bytes int64, n int) (seen []uint64, next uint64) {
	t.Helper()
	next, err := CallsBefore(t.Context(), path, seq, bytes, func(c *Call) bool {
		seen = append(seen, c.Seq)
		return len(seen) < n
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen, next
}

// down returns the numbers from high to low.
func down(high, low int) (list []uint64) {
	for i := high; i >= low; i-- {
		list = append(list, uint64(i))
	}
	return list
}

func TestCallsBefore_pages(t *testing.T) {
	for _, maxSize := range []int64{1, 3000, 1 << 30} {
		t.Run(fmt.Sprint(maxSize), func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "audit.jsonl")
			l := opened(t, Options{Path: path, Mode: Strict, MaxSize: maxSize, Keep: Retention{Files: 1000}})
			const records = 100
			for range records {
				if err := l.Outcome(refund()); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Event(Event{Name: "server.reloaded"}); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			for _, row := range []struct {
				before uint64
				n      int
				want   []uint64
			}{{0, 1000, down(100, 1)}, {0, 7, down(100, 94)}, {94, 7, down(93, 87)}, {1, 5, nil}, {2, 5, down(1, 1)}, {1000, 3, down(100, 98)}} {
				if got, next := callsBefore(t, path, row.before, 1<<30, row.n); !slices.Equal(got, row.want) || next != 0 {
					t.Errorf("before %d: got %v, next %d, want %v", row.before, got, next, row.want)
				}
			}
		})
	}
}

// Pages that are bounded in bytes cover the whole log.
func TestCallsBefore_bytes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: thousands of records, without concurrency")
	}
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	l := opened(t, Options{Path: path, MaxSize: 1 << 30, Keep: Retention{Files: 10}})
	const records = 2000
	for range records {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var all []uint64
	next, pages := uint64(0), 0
	for {
		seen, more := callsBefore(t, path, next, 1, 1000)
		if all, pages = append(all, seen...), pages+1; more == 0 || more == next {
			break
		}
		next = more
	}
	if !slices.Equal(all, down(records, 1)) || pages < 10 {
		t.Errorf("got %d calls in %d pages, next %d", len(all), pages, next)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if next, err := CallsBefore(done, path, 500, 1<<30, func(*Call) bool { return true }); err != nil || next == 0 || next >= 500 {
		t.Errorf("without time: next %d, %v", next, err)
	}
}

// A large file is not read from its end for an old page.
func TestCallsBefore_bisection(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	var b strings.Builder
	const records = 3000
	for i := range records {
		fmt.Fprintf(&b, `{"seq":%d,"time":"2026-01-02T03:04:05Z","kind":"outcome","call_id":"%s"}`+"\n", i+1, strings.Repeat("x", 5000))
	}
	b.WriteString(`{"seq":3001,"time":"2026`)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []uint64{2, 17, 1500, 2999, 3000, 0} {
		from := int(at) - 1
		if at == 0 {
			from = records
		}
		got, _ := callsBefore(t, path, at, 8<<20, 3)
		if want := down(from, max(1, from-2)); !slices.Equal(got, want) {
			t.Errorf("before %d: got %v, want %v", at, got, want)
		}
	}
}

// Lines that are no records are skipped, however long they are.
func TestCallsBefore_garbage(t *testing.T) {
	const record = `{"seq":%d,"time":"2026-01-02T03:04:05Z","kind":"outcome","call_id":"a"}` + "\n"
	for name, text := range map[string]string{
		"lines":      fmt.Sprintf(record, 1) + "\n\nno record\n[[[[\n" + fmt.Sprintf(record, 2) + "half",
		"long lines": fmt.Sprintf(record, 1) + strings.Repeat("x", 5*maxLine) + "\n" + fmt.Sprintf(record, 2) + strings.Repeat("y", 3*maxLine),
		"long start": strings.Repeat("x", 2*maxLine) + "\n" + fmt.Sprintf(record, 1) + fmt.Sprintf(record, 2),
	} {
		path := filepath.Join(memoryFolder(t), "audit.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, next := callsBefore(t, path, 0, 1<<30, 10); !slices.Equal(got, down(2, 1)) || next != 0 {
			t.Errorf("%s: got %v, next %d", name, got, next)
		}
	}
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	for _, text := range []string{"", "\n", strings.Repeat("x", 3*maxLine), strings.Repeat("\n", 1000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, next := callsBefore(t, path, 5, 1<<30, 10); got != nil || next != 0 {
			t.Errorf("%.5q: got %v, next %d", text, got, next)
		}
	}
}
