package mcp_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

func TestEachRevisionIsAnsweredByItself(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1.0": "2025-11-25", "": "2025-11-25", "9999-12-31": "2025-11-25",
	} {
		text := strings.Replace(ableClient, `"2025-11-25"`, `"`+asked+`"`, 1)
		reply := s.Exchange(t.Context(), []byte(text), mcp.Exchange{Peer: mcp.Peer{Principal: identity.Anonymous()}})
		if !strings.Contains(reply.Frame.String(), `"protocolVersion":"`+want+`"`) {
			t.Errorf("%q is answered with %s", asked, reply.Frame)
		}
	}
}

// TestTheIDOfASessionIsVisibleASCII: it travels in a header, and cannot be guessed.
func TestTheIDOfASessionIsVisibleASCII(t *testing.T) {
	s, _ := newServer(t, mcp.Options{}, mcptest.Tools()...)
	known := map[string]bool{}
	for range 100 {
		id := openSession(t.Context(), s, mcp.Peer{Principal: identity.Anonymous()})
		if len(id) < 22 || known[id] || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Fatalf("the id is %q", id)
		}
		known[id] = true
	}
}
