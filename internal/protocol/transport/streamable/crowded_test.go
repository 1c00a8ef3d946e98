package streamable_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestAnswers_withoutRoom has clients ask for a result that there is no room for, alone and
// behind an event.
func TestAnswers_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		if r.Emit != nil {
			r.Emit.Progress(1, nil, "")
		}
		return mcptest.Text(strings.Repeat("x", 100_000))
	}
	s := newSite(t, streamable.Options{Bounds: httpstream.Bounds{Answers: httpguard.NewBudget(100_000)}}, tool)
	session := s.begin("2025-11-25")
	const lost = `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the answer is lost`
	r := s.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`, jsonType, session)
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.HasPrefix(string(text), lost) {
		t.Errorf("alone the answer is %s %.200s: %v", r.Status, text, err)
	}
	r = s.do(t.Context(), "POST", progressing, jsonType, session)
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "data: "+lost) {
		t.Errorf("behind an event the answer is %s %.1000s: %v", r.Status, text, err)
	}
}
