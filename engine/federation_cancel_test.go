package engine_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// newCancellableUpstream returns a server with a tool that blocks until it is cancelled.
func newCancellableUpstream() (s *mcp.Server, begun, cancelled <-chan struct{}) {
	first, last := make(chan struct{}), make(chan struct{})
	s = mcp.NewServer(&mcp.Implementation{Name: "attentive", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "waits", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(first)
		<-ctx.Done()
		close(last)
		return nil, ctx.Err()
	})
	return s, first, last
}

func TestUpstream_callerGone(t *testing.T) {
	for way, handler := range map[string]func(func(*http.Request) *mcp.Server) http.Handler{
		"sessions": func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewStreamableHTTPHandler(of, nil) },
		"newest": func(of func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
		},
		"events": func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(of, nil) },
	} {
		t.Run(way, func(t *testing.T) {
			up, begun, cancelled := newCancellableUpstream()
			s := federated(t, upstreamAt(web(t, handler(func(*http.Request) *mcp.Server { return up }))))
			ctx, leave := context.WithCancel(t.Context())
			result := make(chan call.Result, 1)
			go func() { result <- s.Execute(ctx, tool("lab_waits", `{}`)) }()
			<-begun
			leave()
			if got := outcomeLine(<-result); got != "EXECUTION_ERROR: the call was canceled" {
				t.Errorf("the call ends with %s", got)
			}
			<-cancelled
		})
	}
}
