package engine_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestFollow_upstreamResource(t *testing.T) {
	subscribed, left := make(chan string, 10), make(chan string, 10)
	notes := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { subscribed <- r.Params.URI; return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { left <- r.Params.URI; return nil },
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI}}}, nil
	}
	notes.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "lab://notes/{id}", Name: "notes"}, read)
	notes.AddTool(&mcp.Tool{Name: "touch", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, uri := range []string{"lab://notes/1", "lab://notes/2"} { // a followed resource, and another one
			_ = notes.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	s := federated(t, upstreamAt(web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return notes }, nil))))
	changed := make(chan []string, 100)
	defer s.Watch(func(uris []string) { changed <- uris })()
	leave := s.Follow("lab://notes/1")
	again := s.Follow("lab://notes/1")
	s.Follow("nobody://has/this")()
	if uri := <-subscribed; uri != "lab://notes/1" {
		t.Fatalf("the subscription is %q", uri)
	}
	for told := false; !told; { // the server acknowledges before it sends updates
		if got := outcomeLine(executeCall(t, s, tool("lab_touch", `{}`))); got != "[]" {
			t.Fatalf("the call ends with %s", got)
		}
		select {
		case uris := <-changed:
			if told = true; !slices.Equal(uris, []string{"lab://notes/1"}) {
				t.Errorf("changed are %q", uris)
			}
		default:
		}
	}
	leave()
	leave()
	select {
	case <-left:
		t.Error("a subscription was cancelled that is still used")
	default:
	}
	again()
	if uri := <-left; uri != "lab://notes/1" || len(subscribed) > 0 {
		t.Errorf("cancelled is %q, and %d more subscriptions", uri, len(subscribed))
	}
}
