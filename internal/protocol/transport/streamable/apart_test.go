package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestStreamsOfASessionKeepTheirMessagesApart: the stream of the session
// carries no answer and nothing that belongs to a call, a stream that is resumed
// replays its own events alone, and no two events have one id.
func TestStreamsOfASessionKeepTheirMessagesApart(t *testing.T) {
	tool, goOn := halting()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	own := reader(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session))
	primed, _ := own()

	ctx, lose := context.WithCancel(t.Context())
	calls := [2]func() (event, bool){}
	var all []event
	for i := range calls {
		text := strings.Replace(progressing, `"id":2`, `"id":`+string(rune('2'+i)), 1)
		calls[i] = reader(t, s.do(ctx, "POST", text, jsonType, session))
		for range 2 {
			e, _ := calls[i]()
			all = append(all, e)
		}
	}
	s.backend.Publish(mcptest.Tools()[:2]...)
	told, _ := own()
	if !strings.Contains(told.data, "tools/list_changed") {
		t.Fatalf("the stream of the session began with %q", told)
	}
	lose()
	close(goOn)
	for i := range calls {
		last := all[2*i+1]
		rest := events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+last.id))
		rest = withData(rest)
		if len(rest) != 2 || !strings.Contains(rest[0].data, `"progress":2`) || !strings.Contains(rest[1].data, `"id":`+string(rune('2'+i))) {
			t.Errorf("the rest of call %d is %q", i, rest)
		}
		all = append(all, rest...)
	}
	s.backend.Publish(mcptest.Tools()[:3]...)
	if e, _ := own(); !strings.Contains(e.data, "tools/list_changed") {
		t.Errorf("the stream of the session carries %q", e)
	}
	known := map[string]bool{}
	for _, e := range append(all, primed, told) {
		if e.id == "" || known[e.id] {
			t.Errorf("the id %q is there twice, or empty", e.id)
		}
		known[e.id] = true
	}
	if r := s.do(t.Context(), http.MethodDelete, "", session); r.StatusCode != http.StatusNoContent {
		t.Errorf("the end of the session: %s", r.Status)
	}
}

// withData leaves out the events that only tell how to come back.
func withData(all []event) (some []event) {
	for _, e := range all {
		if e.data != "" {
			some = append(some, e)
		}
	}
	return some
}
