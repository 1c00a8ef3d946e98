package websocket_test

import (
	"context"
	"strings"
	"testing"

	client "github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// TestAnswers_withoutRoom has a client ask for a result that there is no room for: it gets
// an error with the id of its request, and goes on.
func TestAnswers_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return mcptest.Text(strings.Repeat("x", 100_000)) }
	web, _ := newSite(t, websocket.Options{Answers: httpguard.NewBudget(100_000)}, tool)
	socket := connect(t, web)
	defer socket.Close()
	for _, step := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"hello","_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			`{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"the answer is lost`},
		{ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		if err := socket.WriteMessage(client.TextMessage, []byte(step.send)); err != nil {
			t.Fatal(err)
		}
		_, got, err := socket.ReadMessage()
		if err != nil || !strings.HasPrefix(string(got), step.want) {
			t.Errorf("the answer is %.200s: %v", got, err)
		}
	}
}
