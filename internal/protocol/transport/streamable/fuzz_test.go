package streamable_test

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzPost posts a body with headers. The status and the reply match those
// computed with encoding/json and mime.
func FuzzPost(f *testing.F) {
	for _, text := range mcptest.FuzzSeeds() {
		f.Add([]byte(text), "application/json", "application/json, text/event-stream", "", "")
		f.Add([]byte(text), "application/json; charset=utf-8", "*/*", "2026-07-28", "x")
		f.Add([]byte(text), "text/plain", "text/html;q=0", "newest", "y")
	}
	s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{})
	f.Cleanup(func() { _ = s.Drain(context.Background()) })
	handler := streamable.New(s, streamable.Options{})
	f.Fuzz(func(t *testing.T, body []byte, kind, accept, version, session string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a subscription has no other end
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header = http.Header{"Content-Type": {kind}, "Accept": {accept}}
		if version != "" {
			r.Header.Set("MCP-Protocol-Version", version)
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		answer := w.Body.String()
		if w.Header().Get("Content-Type") == "text/event-stream" {
			return // these tools send nothing before the result
		}
		var replies []mcptest.Reply
		if answer != "" {
			var ok bool
			if replies, ok = mcptest.Replies([]string{answer}); !ok || len(replies) != 1 {
				t.Fatalf("body: %q", answer)
			}
		}
		if refused := w.Code >= 300; refused && (len(replies) == 0 || !replies[0].Error) {
			t.Fatalf("status %d with %q", w.Code, answer)
		}
		judge(t, r.Header, body, w.Code, replies)
	})
}

func isServed(version string) bool {
	_, ok := mcp.CheckVersion(http.Header{"Mcp-Protocol-Version": {version}})
	return ok
}

// judge compares the response to a request with the expected one.
func judge(t *testing.T, h http.Header, body []byte, status int, replies []mcptest.Reply) {
	t.Helper()
	version, session := h.Get("MCP-Protocol-Version"), h.Get("Mcp-Session-Id")
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	e := mcptest.Expect(body, jsonguard.Check(body, jsonguard.Limits{}) == nil)
	e.Ping = e.Ping && version == "" && session == ""
	unserved := version != "" && !isServed(version)
	lost := session != "" && version != "2026-07-28"
	switch {
	case status == http.StatusNotAcceptable:
	case err != nil || media != "application/json":
		if status != http.StatusUnsupportedMediaType {
			t.Fatalf("status %d for an invalid content type", status)
		}
	case len(replies) == 0:
		if status != http.StatusAccepted || e.Reply {
			t.Fatalf("status %d and no reply, want %+v", status, e)
		}
	case unserved || lost:
		if e.Error && !replies[0].Error {
			t.Fatalf("status %d with %+v, want an error", status, replies)
		}
	case !e.Fits(replies[0]):
		t.Fatalf("status %d with %+v, want %+v", status, replies, e)
	}
}
