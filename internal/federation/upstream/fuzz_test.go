package upstream

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// fuzzed are limits that a fuzzer can reach.
var fuzzed = jsonguard.Limits{Bytes: 4 << 10, Depth: 16, Tokens: 1000, Halves: true}

// running returns a filter with a call, whose request with id 1 has been sent.
func running() (*messageFilter, *Call) {
	w := newMessageFilter(fuzzed, InputPolicy{Elicit: true}, func(string, string) {})
	c := newCall(1, Request{Method: MethodTool}, nil, func(error) {})
	_ = w.open(c)
	w.outgoing([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":` + c.token + `}}}`))
	return w, c
}

// FuzzMessageFilter checks that the client library sees one message for each message, and never
// the result of a call.
func FuzzMessageFilter(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"secret"}]}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"Sure?","_meta":{"x":1}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mcpd-1","progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"lab://note"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, `{}`, `[]`, `null`, `{"id":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, c := running()
		seen, err := w.incoming(slices.Clone(text), &stream{})
		if err != nil || seen == nil {
			return
		}
		m, err := parse(seen)
		if err != nil || m.id == nil && m.method == "" {
			t.Fatalf("of %q it sees %q, %v", text, seen, err)
		}
		if c.answered() && m.fault == nil && string(m.result) != placeholderResults[MethodTool] {
			t.Errorf("of the result %q it sees %q", c.result, seen)
		}
	})
}

// FuzzSSEFilter checks that the chunks of a stream do not matter, and that each event holds one
// message on one line.
func FuzzSSEFilter(f *testing.F) {
	for _, seed := range []string{
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
		"event: message\r\nid: 7\r\nretry: 10\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":9,\"result\":{}}\r\n\r\n",
		": a comment\n\nevent: endpoint\ndata: /messages\n\n", "id: 1\nretry: x\n\n", "data\n\ndata:\n\n", "data: {",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, resumes bool) {
		read := func(r io.Reader) (string, error) {
			w, c := running()
			passed, err := io.ReadAll(newSSEFilter(io.NopCloser(r), w, &stream{call: c}, resumes))
			return string(passed), err
		}
		passed, err := read(bytes.NewReader(text))
		if pieces, again := read(iotest.OneByteReader(bytes.NewReader(text))); pieces != passed || (err == nil) != (again == nil) {
			t.Fatalf("in pieces it is %q, %v, and as a whole %q, %v", pieces, again, passed, err)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(passed, "\n\n"), "\n\n") {
			held(t, event)
		}
	})
}

// held checks an event that passed the filter.
func held(t *testing.T, event string) {
	t.Helper()
	fields := map[string]string{}
	for line := range strings.SplitSeq(event, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		if _, twice := fields[name]; twice {
			t.Errorf("the event %q has two of %q", event, name)
		}
		fields[name] = value
	}
	data, is := fields["data"]
	if !is || fields["event"] == "endpoint" {
		return
	}
	if err := jsonguard.Check([]byte(data), fuzzed); err != nil {
		t.Errorf("the event %q holds an invalid message: %v", event, err)
	}
}
