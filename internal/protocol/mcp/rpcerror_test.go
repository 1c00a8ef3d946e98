package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestReservedCodesKeepTheirMeaning: a script cannot have a modern client
// believe that its headers are wrong, or meet a code that nobody has defined.
func TestReservedCodesKeepTheirMeaning(t *testing.T) {
	for _, test := range []struct {
		code          int
		data          string
		modern        int
		wantMalformed bool
	}{
		{418, `{}`, 418, false},
		{-32000, `{}`, -32000, false},
		{-32002, `{}`, -32603, false},
		{-32020, `{}`, -32603, false},
		{-32021, `{"requiredCapabilities":{"sampling":{}}}`, -32021, true},
		{-32021, `{}`, -32603, false},
		{-32022, `{"supported":[]}`, -32603, false},
		{-32042, `{}`, -32603, false},
		{-32099, `{}`, -32603, false},
		{-32100, `{}`, -32100, false},
		{-32602, `{}`, -32602, false},
	} {
		t.Run(fmt.Sprint(test.code, test.data), func(t *testing.T) {
			tool := mcptest.Tools()[0]
			tool.Run = func(context.Context, call.Request) call.Result {
				e := &call.RPCError{Code: test.code, Message: "mine", Data: json.RawMessage(test.data)}
				return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "mine", RPC: e}}
			}
			s, _ := newServer(t, mcp.Options{}, tool)
			reply := s.Exchange(t.Context(), request(1, "tools/call", `"name":"hello"`), exchange("tools/call", "hello"))
			want := fmt.Sprintf(`"error":{"code":%d,"message":"mine","data":%s}`, test.modern, test.data)
			if got := reply.Frame.String(); !strings.Contains(got, want) || (reply.Refusal == mcp.Malformed) != test.wantMalformed {
				t.Errorf("a modern client gets %s, refusal %d", got, reply.Refusal)
			}
			peer := mcp.Peer{Principal: identity.Anonymous()}
			session := openSession(t.Context(), s, peer)
			reply = s.Exchange(t.Context(), legacyCall(2, "hello"), mcp.Exchange{Peer: peer, Session: session})
			if want := fmt.Sprintf(`"error":{"code":%d,`, test.code); !strings.Contains(reply.Frame.String(), want) {
				t.Errorf("a legacy client gets %s", reply.Frame)
			}
		})
	}
}
