package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Methods returns the method table of a server with tasks: whether legacy and
// modern revisions have each method.
func Methods() map[string][2]bool {
	methods := map[string][2]bool{}
	for name, m := range methodTable(true) {
		methods[name] = [2]bool{m.eras&legacy != 0, m.eras&modern != 0}
	}
	return methods
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse_messages(t *testing.T) {
	for _, test := range []struct {
		name, text string
		code       int // expected code of the fault; 0 for none
		id, method string
	}{
		{"a request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, 0, `1`, "m"},
		{"an id that is a string", `{"jsonrpc":"2.0","id":"x","method":"m"}`, 0, `"x"`, "m"},
		{"an id below zero", `{"jsonrpc":"2.0","id":-7,"method":"m"}`, 0, `-7`, "m"},
		{"a huge id", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, 0, `123456789012345678901234567890`, "m"},
		{"a notification", `{"jsonrpc":"2.0","method":"m"}`, 0, ``, "m"},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 0, `1`, ""},
		{"a response to nothing", `{"jsonrpc":"2.0","id":null,"error":{}}`, 0, ``, ""},
		{"params that are null", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, 0, `1`, "m"},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"m"}`, codeInvalidRequest, ``, ""},
		{"an id with a fraction", `{"jsonrpc":"2.0","id":1.0,"method":"m"}`, codeInvalidRequest, ``, ""},
		{"an id with an exponent", `{"jsonrpc":"2.0","id":1e2,"method":"m"}`, codeInvalidRequest, ``, ""},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"m"}`, codeInvalidRequest, ``, ""},
		{"an id that is too long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", maxID) + `","method":"m"}`, codeInvalidRequest, ``, ""},
		{"another JSON-RPC", `{"jsonrpc":"1.0","id":1,"method":"m"}`, codeInvalidRequest, `1`, ""},
		{"no JSON-RPC at all", `{"id":1,"method":"m"}`, codeInvalidRequest, `1`, ""},
		{"no method", `{"jsonrpc":"2.0","id":1}`, codeInvalidRequest, `1`, ""},
		{"an empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, codeInvalidRequest, `1`, ""},
		{"a method that is a number", `{"jsonrpc":"2.0","id":1,"method":1}`, codeInvalidRequest, `1`, ""},
		{"params that are an array", `{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, codeInvalidParams, `1`, "m"},
		{"a name in capitals", `{"jsonrpc":"2.0","ID":1,"Method":"m"}`, codeInvalidRequest, ``, ""},
		{"a string", `"m"`, codeInvalidRequest, ``, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, f := parse([]byte(test.text), jsonguard.Limits{})
			if f != nil {
				t.Fatalf("the text was rejected: %v", f)
			}
			m := &b.pending[0]
			if (m.bad == nil) != (test.code == 0) || m.bad != nil && m.bad.Code != test.code {
				t.Errorf("fault = %+v, want code %d", m.bad, test.code)
			}
			if string(m.id) != test.id || m.method != test.method {
				t.Errorf("id = %s, method = %q; want %s and %q", m.id, m.method, test.id, test.method)
			}
		})
	}
}

func TestParse_invalidText(t *testing.T) {
	for _, test := range []struct {
		name, text string
		code       int
		refusal    Refusal
	}{
		{"nothing", ``, codeParse, Malformed},
		{"half a message", `{"jsonrpc":"2.0"`, codeParse, Malformed},
		{"two messages", `{} {}`, codeParse, Malformed},
		{"invalid UTF-8", "\"\xff\"", codeParse, Malformed},
		{"duplicate member", `{"id":1,"id":2}`, codeInvalidRequest, Malformed},
		{"too deep", strings.Repeat("[", 40) + strings.Repeat("]", 40), codeInvalidRequest, Malformed},
		{"too large", strings.Repeat(" ", 2000) + `{}`, codeInvalidRequest, TooLarge},
		{"number too large", `{"id":1e999}`, codeInvalidRequest, Malformed},
		{"an empty batch", `[]`, codeInvalidRequest, Malformed},
		{"batch too long", `[` + strings.Repeat("1,", maxBatch) + `1]`, codeInvalidRequest, Malformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, f := parse([]byte(test.text), jsonguard.Limits{Bytes: 1000})
			if f == nil {
				t.Fatalf("the text was parsed as %d messages", len(b.pending))
			}
			if f.Code != test.code || f.refusal != test.refusal {
				t.Errorf("fault = %+v, want code %d and refusal %d", f, test.code, test.refusal)
			}
		})
	}
}

// FuzzParse compares the parser with encoding/json: a valid message has the id
// and the method that encoding/json finds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`,
		`{"jsonrpc":"2.0","id":"\u0061","m\u0065thod":"p"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
		`{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":null,"method":"x"}`,
		`{"id":2,"params":{"arguments":{"name":[{"uri":"}"}]},"_meta":{"mcpd/agent":{"a":{}},"progressToken":"\\"},"name":"\"","uri":null},"method":"m","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{},"x":{"_meta":{"progressToken":1}},"requestState":"s","inputResponses":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, fault := parse(text, jsonguard.Limits{})
		if fault != nil || b.isBatch || b.pending[0].bad != nil || b.pending[0].isResponse() {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		var method string
		if err := json.Unmarshal(want["method"], &method); err != nil {
			t.Fatal(err)
		}
		m := &b.pending[0]
		if m.method != method || string(m.id) != string(want["id"]) {
			t.Errorf("method = %q, id = %s; want %q and %s", m.method, m.id, method, want["id"])
		}
		if params := want["params"]; !jsontext.IsNull(params) && string(m.params) != string(params) {
			t.Errorf("params = %s, want %s", m.params, params)
		}
		params := membersOf(t, want["params"])
		checkMembers(t, params, map[string][]byte{
			"name": m.item.name, "uri": m.item.uri, "arguments": m.item.arguments,
			"inputResponses": m.item.responses, "requestState": m.item.state,
		})
		if m.meta.bad == nil {
			checkMembers(t, membersOf(t, params["_meta"]), map[string][]byte{
				keyClientInfo: m.meta.clientInfo, keyCapabilities: m.meta.capabilities, keyLogLevel: m.meta.logLevel,
				keyAgent: m.meta.agent, "progressToken": m.meta.progressToken,
			})
		}
	})
}

// membersOf returns the members that encoding/json finds in an object; none for
// any other value.
func membersOf(t *testing.T, object []byte) (members map[string]json.RawMessage) {
	if jsontext.IsObject(object) {
		if err := json.Unmarshal(object, &members); err != nil {
			t.Fatal(err)
		}
	}
	return members
}

// checkMembers compares parsed members with the members that encoding/json
// finds.
func checkMembers(t *testing.T, want map[string]json.RawMessage, read map[string][]byte) {
	for name, got := range read {
		if jsontext.IsNull(got) && jsontext.IsNull(want[name]) {
			continue
		}
		if string(got) != string(want[name]) {
			t.Errorf("the member %s is %s, want %s", name, got, want[name])
		}
	}
}

// keyForm matches a prefix of labels, a slash and a name (2026-07-28
// basic/index, _meta).
var keyForm = regexp.MustCompile(`\A[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*/[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?\z`)

func TestMeta_keySyntax(t *testing.T) {
	for _, key := range []string{keyServerInfo, keySubscriptionID, keyTasks, keyAgent, keyError, keyRevision, keyTimeout} {
		if !keyForm.MatchString(key) {
			t.Errorf("%q is not a valid key", key)
		}
	}
}

func TestAppendRaw_oneLine(t *testing.T) {
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

// TestParse_linearTime repeats and nests each construct. If the time grew
// faster than the size, the test would not end.
func TestParse_linearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one long-running goroutine")
	}
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
					t.Errorf("%s, %d times: messages %v, fault %v", name, n, b, f)
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
