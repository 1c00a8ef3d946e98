package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// TestLimits_everyConstruct parses, writes, reads and shows definitions that repeat or nest a
// construct up to and beyond the limits. None may crash the process or take more than linear
// time, which the number of texts would reveal.
func TestLimits_everyConstruct(t *testing.T) {
	again := func(open, shut string) func(n int) string {
		return func(n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	}
	for _, row := range []struct {
		name   string
		schema func(n int) string
		most   int // the largest accepted size
	}{
		{"nested objects", again(`{"a":`, `}`), 10},
		{"nested arrays", again(`[`, `]`), 10},
		{"items", func(n int) string { return "[" + strings.Repeat("1,", n) + "1]" }, 10_000},
		{"numbers that grow", func(n int) string { return "[" + strings.Repeat("1e20,", n) + "1]" }, 1_000},
		{"empty objects in depth", func(n int) string {
			return strings.Repeat("[", 60) + strings.Repeat("{},", n) + "1" + strings.Repeat("]", 60)
		}, 1_000},
		{"letters", func(n int) string { return `"` + strings.Repeat("x", n) + `"` }, 100_000},
		{"sentences", func(n int) string { return `"` + strings.Repeat(". ", n) + `"` }, 10_000},
		{"lines", func(n int) string { return `"` + strings.Repeat(`\n`, n) + `"` }, 10_000},
		{"backslashes", func(n int) string { return `"` + strings.Repeat(`\\`, n) + `"` }, 100_000},
		{"quotes", func(n int) string { return `"` + strings.Repeat(`\"`, n) + `"` }, 100_000},
		{"escapes", func(n int) string { return `"` + strings.Repeat(`\u202e`, n) + `"` }, 10_000},
		{"marks", func(n int) string { return `"` + strings.Repeat("\u0301", n) + `"` }, 10_000},
		{"digits", func(n int) string { return "0." + strings.Repeat("7", n) }, 100_000},
		{"zeros", func(n int) string { return "1." + strings.Repeat("0", n) }, 1_000_000},
		{"zeros of an exponent", func(n int) string { return "1e-" + strings.Repeat("0", n) + "1" }, 1_000_000},
		{"a long name", func(n int) string { return `{"` + strings.Repeat("x", n) + `":1}` }, 100_000},
	} {
		for n := 1; n <= 1_000_000; n *= 10 {
			entry := `{"name":"a","inputSchema":{"x":` + row.schema(n) + `}}`
			read, err := lockfile.ParseTool("github", []byte(entry))
			if (err == nil) != (n <= row.most) {
				t.Errorf("%d %s: %v", n, row.name, err)
			}
			if err != nil {
				continue
			}
			lock := new(lockfile.Lock).WithTools("github", read)
			file := lock.Encode()
			if len(file) != lock.EncodedSize() || len(file) > 257<<10 {
				t.Errorf("%d %s: the file has %d bytes, EncodedSize is %d", n, row.name, len(file), lock.EncodedSize())
			}
			parsed, err := lockfile.Parse(file)
			if err != nil {
				t.Errorf("%d %s: %v", n, row.name, err)
				continue
			}
			if !cmp.Equal(contents(lock), contents(parsed)) {
				t.Errorf("%d %s: the file parses to another lock", n, row.name)
			}
			c := lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: "a", New: read}
			if shown := c.Diff(); len(shown) > 1<<20 {
				t.Errorf("%d %s: the diff has %d bytes", n, row.name, len(shown))
			}
		}
	}
}

// None is a valid lock, and none may take more than linear time.
func TestParse_cost(t *testing.T) {
	const open = "mcpd.lock 1\ntool \"a\" \"b\"\nsha256 0\n{\n"
	for _, row := range []struct{ begins, repeated string }{
		{"", "\n"}, {"", "# x\n"}, {"", "x"}, {"mcpd.lock 1\n", "upstream \"a\"\nx"}, {"mcpd.lock 1\ntool \"", `\\`},
		{open, " \"\\\\\"\n"}, {open, " \"x\"\n"}, {open, " {\"a\":\n"}, {open, " ["}, {open, "\n"}, {open, " 1,\n"},
	} {
		for n := 1; n <= 1_000_000; n *= 10 {
			file := row.begins + strings.Repeat(row.repeated, n)
			if _, err := lockfile.Parse([]byte(file)); err == nil {
				t.Errorf("%d times %q after %q is accepted as a lock", n, row.repeated, row.begins)
			}
		}
	}
}
