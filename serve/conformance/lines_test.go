package conformance_test

import (
	"context"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// era is the last revision of one of the two eras of the protocol.
type era string

const (
	legacy era = "2025-11-25"
	modern era = "2026-07-28"
)

// line is a transport, as clients of one era use it.
type line struct {
	name string
	era  era
	// transport is for the client of the go-sdk, dial for JSON-RPC as it is.
	transport func(*testing.T, *site) mcp.Transport
	dial      func(*testing.T, *site, era) *wire
}

var lines = []line{
	{"Streamable HTTP", legacy, overStreamable, dialStreamable},
	{"Streamable HTTP", modern, overStreamable, dialStreamable},
	{"stdio", legacy, overStdio, dialStdio},
	{"stdio", modern, overStdio, dialStdio},
	{"WebSocket", legacy, overWebSocket, dialWebSocket},
	{"WebSocket", modern, overWebSocket, dialWebSocket},
	{"HTTP+SSE", legacy, overSSE, dialSSE},
	{"HTTP+SSE", modern, overSSE, dialSSE},
}

func overStreamable(_ *testing.T, s *site) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: s.client}
}

func overSSE(_ *testing.T, s *site) mcp.Transport {
	return &mcp.SSEClientTransport{Endpoint: s.url + "/sse", HTTPClient: s.client}
}

func overStdio(t *testing.T, s *site) mcp.Transport {
	output, input := pipes(t, s)
	return &mcp.IOTransport{Reader: output, Writer: input}
}

func overWebSocket(t *testing.T, s *site) mcp.Transport {
	return socket{dialWebSocket(t, s, legacy)}
}

// socket has the client of the go-sdk, which knows no WebSockets, use a wire.
type socket struct{ *wire }

func (s socket) Connect(context.Context) (mcp.Connection, error) { return s, nil }
func (s socket) SessionID() string                               { return "" }
func (s socket) Close() error                                    { s.hang(); return nil }

func (s socket) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case text, ok := <-s.inbox:
		if !ok {
			return nil, io.EOF
		}
		return jsonrpc.DecodeMessage(text)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s socket) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.send(text)
}
