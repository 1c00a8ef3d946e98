package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/jsongate"
)

func TestMembersAreFoundInAnyJSON(t *testing.T) {
	for _, test := range []struct{ name, object, member, want string }{
		{"a string", `{"a":"x"}`, "a", `"x"`},
		{"a number", `{"a":-1.5e3}`, "a", `-1.5e3`},
		{"the last of several", `{"b":1,"c":[],"a":true}`, "a", `true`},
		{"behind white space", " {\n\t\"b\" : 1 , \"a\" :\r\n null } ", "a", `null`},
		{"brackets inside strings", `{"b":"}]\\","c":"\"{","a":{"d":"]"}}`, "a", `{"d":"]"}`},
		{"an escaped name", `{"\u0061":1}`, "a", `1`},
		{"a name with an escaped quote", `{"x\"a":2,"a":1}`, "a", `1`},
		{"nested objects do not count", `{"b":{"a":2},"a":1}`, "a", `1`},
		{"absent", `{"b":1}`, "a", ``},
		{"an empty object", `{}`, "a", ``},
		{"no object", `["a",1]`, "a", ``},
		{"nothing", ``, "a", ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(member([]byte(test.object), test.member)); got != test.want {
				t.Errorf("member = %s, want %s", got, test.want)
			}
		})
	}
}

// FuzzScan holds the cursor to encoding/json on all text that passes the gate,
// and to not failing on any other.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,{"b":"\"}"}]}}}`,
		`{"\u0061":"\ud83d\ude00","b":[[],{}],"c":1e-7}`, `[1,"a",{"b":null}]`, `{"a`, `{"a":"\`, `{:,}`, `{"a":}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]string{}
		c, isObject := members(text)
		for {
			name, value, ok := c.member()
			if !ok {
				break
			}
			got[string(name)] = string(value)
		}
		if jsongate.Check(text, jsongate.Limits{}) != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); (err == nil && want != nil) != isObject {
			t.Fatalf("an object: %v, want the opposite", isObject)
		}
		wantText := map[string]string{}
		for name, value := range want {
			wantText[name] = string(value)
		}
		if diff := cmp.Diff(wantText, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestElementsAreFoundInAnyArray(t *testing.T) {
	c, ok := elements([]byte(` [ 1 , "a,]" , [2,[3]] , {"b":[4]} ] `))
	if !ok {
		t.Fatal("no array")
	}
	var got []string
	for {
		value, ok := c.element()
		if !ok {
			break
		}
		got = append(got, string(value))
	}
	want := []string{"1", `"a,]"`, "[2,[3]]", `{"b":[4]}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

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
				b, f := parse([]byte(text), jsongate.Limits{})
				if (b == nil) == (f == nil) {
					t.Errorf("%s, %d times: the messages %v and the fault %v", name, n, b, f)
				}
				c, _ := members([]byte(text))
				for {
					if _, _, ok := c.member(); !ok {
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
