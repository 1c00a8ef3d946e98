package audit

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func BenchmarkEncode(b *testing.B) {
	e := newEncoder(make([]byte, keySize), nil)
	c := newChain(make([]byte, keySize))
	r := refund()
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		e.outcome(r, clock())
		line, _ = c.append(line[:0], chainEntry{}, e.body)
	}
	b.SetBytes(int64(len(line)))
}

func BenchmarkAppend(b *testing.B) {
	for _, row := range []struct {
		name    string
		mode    Mode
		callers int
	}{{"relaxed", Relaxed, 1}, {"strict, 1 caller", Strict, 1}, {"strict, 64 callers", Strict, 64}} {
		b.Run(row.name, func(b *testing.B) {
			l := opened(b, Options{Mode: row.mode})
			r := refund()
			b.ReportAllocs()
			b.SetParallelism(row.callers)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Outcome(r); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			if s := l.stats(); s.Syncs > 0 {
				b.ReportMetric(float64(s.Records)/float64(s.Syncs), "records/sync")
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	path := written(b, 500, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(path); err != nil {
			b.Fatal(err)
		}
	}
}

func TestEncode_allocations(t *testing.T) {
	e := newEncoder(make([]byte, keySize), nil)
	c := newChain(make([]byte, keySize))
	r := refund()
	var line []byte
	n := testing.AllocsPerRun(200, func() {
		e.outcome(r, clock())
		line, _ = c.append(line[:0], chainEntry{}, e.body)
	})
	if n > 4 {
		t.Errorf("%v allocations, want 4 at most", n)
	}
}

// Compares two logs, one ten times as long.
func TestVerify_constantMemory(t *testing.T) {
	allocations := func(records int) float64 {
		path := written(t, records, 0)
		return testing.AllocsPerRun(5, func() {
			if _, err := Verify(path); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, long := allocations(20), allocations(200); long > short+2 {
		t.Errorf("%v allocations for 20 records, %v for 200", short, long)
	}
}

// Grows each part of a record, up to a million with MCPD_LONG.
func TestEncode_maxLineLength(t *testing.T) {
	e := newEncoder(make([]byte, keySize), nil)
	c := newChain(make([]byte, keySize))
	sizes := []int{1, 1_000, 100_000}
	if os.Getenv("MCPD_LONG") != "" {
		sizes = []int{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
	}
	for _, n := range sizes {
		for name, r := range grown(n) {
			e.outcome(r, clock())
			line, _ := c.append(nil, chainEntry{}, e.body)
			if len(line) > maxLine/4 {
				t.Errorf("%s of %d: the line has %d bytes", name, n, len(line))
			}
			if _, err := parseLine(line[:len(line)-1]); err != nil {
				t.Errorf("%s of %d: invalid line: %.200s", name, n, line)
			}
		}
	}
}

// grown returns records that are large in one way each.
func grown(n int) map[string]*Record {
	with := func(change func(*Record)) *Record {
		r := refund()
		change(r)
		return r
	}
	arguments := func(text string) *Record {
		return with(func(r *Record) { r.Arguments, r.Values = []byte(text), []byte(text) })
	}
	claims := map[string]any{}
	for i := range min(n, 100_000) {
		claims[strings.Repeat("c", i%300)+string(rune('a'+i%26))+strconv.Itoa(i)] = strings.Repeat("\u202e", 300)
	}
	var nested any
	for range min(n, 10_000) {
		nested = []any{nested, map[string]any{"a": nested}}
	}
	return map[string]*Record{
		"message":          with(func(r *Record) { r.Message = strings.Repeat("\u202e\xff\x00", n) }),
		"scopes":           with(func(r *Record) { r.Caller.Principal.Scopes = make([]string, n) }),
		"claims":           with(func(r *Record) { r.Caller.Principal.Claims = claims }),
		"nested claims":    with(func(r *Record) { r.Caller.Principal.Claims = map[string]any{"n": nested} }),
		"a text":           arguments(`{"a":"` + strings.Repeat("\u202e", n) + `"}`),
		"escapes":          arguments(`{"a":"` + strings.Repeat(`\u0000`, n) + `"}`),
		"nested arguments": arguments(strings.Repeat("[", n) + strings.Repeat("]", n)),
		"items":            arguments("[" + strings.Repeat("1.50,", n) + "1]"),
		"no JSON":          arguments(strings.Repeat("{", n)),
	}
}
