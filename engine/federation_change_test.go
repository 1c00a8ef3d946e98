package engine_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// newSubscribableUpstream returns a server of 2026-07-28, and a channel that is closed when a client has subscribed to
// changes.
func newSubscribableUpstream() (s *mcp.Server, told <-chan struct{}) {
	listens := make(chan struct{})
	once := sync.OnceFunc(func() { close(listens) })
	s = mcp.NewServer(&mcp.Implementation{Name: "listened", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true},
	}})
	s.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				defer once()
			}
			return next(ctx, method, r)
		}
	})
	return s, listens
}

func TestUpstream_modernListChange(t *testing.T) {
	up, told := newSubscribableUpstream()
	s := federated(t, upstreamAt(web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, &mcp.StreamableHTTPOptions{Stateless: true}))))
	<-told
	for _, change := range []struct {
		name   string
		make   func()
		served func() bool
	}{
		{"a tool comes", func() { up.AddTool(&mcp.Tool{Name: "more", InputSchema: anyInput}, nil) }, func() bool { return s.Snapshot().Tool("lab_more") != nil }},
		{"a prompt comes", func() { up.AddPrompt(&mcp.Prompt{Name: "more"}, nil) }, func() bool { return len(s.Snapshot().Offers(call.Prompts)) == 1 }},
		{"a resource comes", func() { up.AddResource(&mcp.Resource{URI: "lab://more", Name: "more"}, nil) }, func() bool { return len(s.Snapshot().Offers(call.Resources)) == 1 }},
	} {
		if change.served() {
			t.Fatalf("it is served before the change: %s", change.name)
		}
		change.make()
		waitForSnapshot(t, s, change.served)
	}
}
