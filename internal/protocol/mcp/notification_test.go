package mcp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestNotificationsAreNeverAnswered: on a connection, and in a batch, also one
// whose params are wrong is met with silence.
func TestNotificationsAreNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, mcp.Options{Ping: -1}, mcptest.Tools()...)
		var heard recorder
		receive, end := connect(t, s, &heard)
		defer end()
		receive(strings.Replace(ableClient, "2025-11-25", "2025-03-26", 1))
		for _, text := range []string{
			ready,
			`{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{}}`,
			`{"jsonrpc":"2.0","method":"tools/list"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":["1"]}`,
			`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":["1"]}]`,
		} {
			if receive(text); len(heard.all()) != 1 {
				t.Fatalf("%s is answered with %s", text, heard.all()[1])
			}
		}
	})
}

// TestANotificationThatIsRefusedIsToldOverHTTP: there the answer has a status.
func TestANotificationThatIsRefusedIsToldOverHTTP(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	reply := s.Exchange(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/x","params":[]}`), exchange("notifications/x", ""))
	if got := reply.Frame.String(); reply.Refusal != mcp.Malformed || strings.Contains(got, `"id"`) {
		t.Errorf("the reply is %s, refusal %d", got, reply.Refusal)
	}
}
