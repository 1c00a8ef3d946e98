package streamable_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

func TestWhatNamesAnUnknownRevisionIsRefused(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	const events = "Accept: text/event-stream, application/json"
	for _, version := range []string{"1999-01-01", "2026-01-01", "nonsense"} {
		for _, test := range []struct{ name, method, body string }{
			{"a request", "POST", ping},
			{"a notification", "POST", ready},
			{"a response", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`},
			{"a batch", "POST", "[" + ping + "]"},
			{"a stream", "GET", ""},
			{"an end", "DELETE", ""},
		} {
			r := s.do(t.Context(), test.method, test.body, jsonType, session, events, "MCP-Protocol-Version: "+version)
			if r.StatusCode != 400 {
				t.Errorf("%s of %s: the status is %s", test.name, version, r.Status)
				continue
			}
			if text := read(t, r); !strings.Contains(text, `"code":-32022`) || !strings.Contains(text, `"supported":["2026-07-28",`) {
				t.Errorf("%s of %s: the body is %s", test.name, version, text)
			}
		}
	}
	if r := s.do(t.Context(), "POST", ping, jsonType, session, events, "MCP-Protocol-Version: 2025-06-18"); r.StatusCode != 200 {
		t.Errorf("a revision that is served: the status is %s", r.Status)
	}
}

func TestWhatIsNoRequestIsAcceptedWithoutABody(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-03-26")
	for _, test := range []struct {
		name, body string
		header     []string
	}{
		{"a notification", ready, []string{session}},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{session}},
		{"a batch of notifications", "[" + ready + "," + ready + "]", []string{session}},
		{"a notification of a modern client", ready, []string{"MCP-Protocol-Version: 2026-07-28"}},
	} {
		r := s.do(t.Context(), "POST", test.body, append(test.header, jsonType)...)
		if text := read(t, r); r.StatusCode != 202 || text != "" {
			t.Errorf("%s: %s, %q", test.name, r.Status, text)
		}
	}
}
