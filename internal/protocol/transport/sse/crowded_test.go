package sse_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

// TestAnswers_withoutRoom has a client ask for a result that there is no room for: its
// stream brings an error with the id of its request, and goes on.
func TestAnswers_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return mcptest.Text(strings.Repeat("x", 100_000)) }
	web, _ := newSite(t, sse.Options{Bounds: httpstream.Bounds{Answers: httpguard.NewBudget(100_000)}}, tool)
	l := open(t, web)
	l.post(callText)
	if got := <-l.lines; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the answer is lost`) {
		t.Errorf("the stream carried %.200s", got)
	}
	l.post(ping)
	if got := <-l.lines; got != pong {
		t.Errorf("the stream carried %s", got)
	}
}
