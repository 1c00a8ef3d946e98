package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func TestGet(t *testing.T) {
	for _, test := range []struct{ name, object, member, want string }{
		{"a string", `{"a":"x"}`, "a", `"x"`},
		{"a number", `{"a":-1.5e3}`, "a", `-1.5e3`},
		{"the last of several", `{"b":1,"c":[],"a":true}`, "a", `true`},
		{"after white space", " {\n\t\"b\" : 1 , \"a\" :\r\n null } ", "a", `null`},
		{"brackets inside strings", `{"b":"}]\\","c":"\"{","a":{"d":"]"}}`, "a", `{"d":"]"}`},
		{"an escaped name", `{"\u0061":1}`, "a", `1`},
		{"name with an escaped quote", `{"x\"a":2,"a":1}`, "a", `1`},
		{"nested objects are skipped", `{"b":{"a":2},"a":1}`, "a", `1`},
		{"absent", `{"b":1}`, "a", ``},
		{"an empty object", `{}`, "a", ``},
		{"not an object", `["a",1]`, "a", ``},
		{"nothing", ``, "a", ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(jsontext.Get([]byte(test.object), test.member)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// FuzzCursor compares the cursor with encoding/json on text that passes jsonguard, and
// checks that other text causes no failure.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,{"b":"\"}"}]}}}`,
		`{"\u0061":"\ud83d\ude00","b":[[],{}],"c":1e-7}`, `[1,"a",{"b":null}]`, `{"a`, `{"a":"\`, `{:,}`, `{"a":}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]string{}
		c, isObject := jsontext.Members(text)
		for {
			name, value, ok := c.Member()
			if !ok {
				break
			}
			got[string(name)] = string(value)
		}
		if jsonguard.Check(text, jsonguard.Limits{}) != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); (err == nil && want != nil) != isObject {
			t.Fatalf("object: %v, want the opposite", isObject)
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

func TestCursor_elements(t *testing.T) {
	c, ok := jsontext.Elements([]byte(` [ 1 , "a,]" , [2,[3]] , {"b":[4]} ] `))
	if !ok {
		t.Fatal("no array")
	}
	var got []string
	for {
		value, ok := c.Element()
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
		text := jsontext.AppendString(nil, s)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); got != want && !strings.Contains(want, "\ufffd") {
			t.Errorf("%q came back as %q", s, got)
		}
		if bytes.ContainsAny(text, "\r\n") {
			t.Errorf("%q is not on one line", s)
		}
	})
}
