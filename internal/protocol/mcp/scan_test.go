package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\n\r\t\x00\x1f", "ü\u2028😀", "\xff\xfe", "a\xc3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		text := appendString(nil, s)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); got != want && !strings.Contains(want, "\ufffd") {
			t.Errorf("%q came back as %q", s, got)
		}
		if bytes.ContainsAny(text, "\r\n") {
			t.Errorf("%q was not put on one line", s)
		}
	})
}

func TestRawValuesArePutOnOneLine(t *testing.T) {
	for value, want := range map[string]string{
		"{\n \"a\": 1\r\n}": `{"a":1}`,
		`{"a": "\n"}`:       `{"a": "\n"}`,
		"":                  "null",
		"{\n":               "null",
	} {
		if got := string(appendRaw(nil, []byte(value))); got != want {
			t.Errorf("appendRaw(%q) = %s, want %s", value, got, want)
		}
	}
}

// TestLargeMessagesCostNoMoreThanTheirSize repeats and nests each construct;
// time that grows faster than size would show as a test that does not end.
func TestLargeMessagesCostNoMoreThanTheirSize(t *testing.T) {
	shapes := map[string]func(n int) string{
		"nested arrays":   func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) },
		"open arrays":     func(n int) string { return strings.Repeat("[", n) },
		"nested objects":  func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) },
		"a batch":         func(n int) string { return "[" + strings.Repeat("1,", n) + "1]" },
		"a long string":   func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
		"backslashes":     func(n int) string { return `"` + strings.Repeat(`\\`, n) + `"` },
		"escaped quotes":  func(n int) string { return `"` + strings.Repeat(`\"`, n) + `"` },
		"many members":    func(n int) string { return manyMembers(n) },
		"white space":     func(n int) string { return strings.Repeat(" ", n) + "{}" },
		"a long number":   func(n int) string { return strings.Repeat("1", n) },
		"colons":          func(n int) string { return "{" + strings.Repeat(":", n) },
		"unended strings": func(n int) string { return strings.Repeat(`"\`, n) },
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		for n := 10; n <= 1_000_000; n *= 10 {
			value := shapes[name](n)
			for _, text := range []string{
				value,
				`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + value + `}}`,
				`{"jsonrpc":"2.0","id":` + value + `,"method":"ping"}`,
			} {
				b, f := parse([]byte(text), jsonguard.Limits{})
				if (b == nil) == (f == nil) {
					t.Errorf("%s, %d times: the messages %v and the fault %v", name, n, b, f)
				}
				c, _ := jsontext.Members([]byte(text))
				for {
					if _, _, ok := c.Member(); !ok {
						break
					}
				}
			}
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"m%d":0,`, i)
	}
	b.WriteString(`"last":0}`)
	return b.String()
}
