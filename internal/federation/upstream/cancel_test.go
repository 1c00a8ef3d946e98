package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// attentive is a server that reports its calls: its tool "waits" blocks until it is cancelled,
// and "begun" and "cancelled" return when that has happened to a call.
func attentive() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "attentive", Version: "1"}, nil)
	begun, cancelled := make(chan struct{}, 10), make(chan struct{}, 10)
	add := func(name string, run func(context.Context)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			run(ctx)
			return &mcp.CallToolResult{Content: []mcp.Content{}}, ctx.Err()
		})
	}
	add("waits", func(ctx context.Context) {
		begun <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
	})
	for name, seen := range map[string]chan struct{}{"begun": begun, "cancelled": cancelled} {
		add(name, func(ctx context.Context) {
			select {
			case <-seen:
			case <-ctx.Done():
			}
		})
	}
	return s
}

// dated removes the revision without sessions from a server: the SDK would offer it even on a
// transport that does not support it.
func dated(s *mcp.Server) *mcp.Server {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "server/discover" {
				return nil, errors.New("no such method")
			}
			return next(ctx, method, r)
		}
	})
	return s
}

func TestCall_cancelNotifiesServer(t *testing.T) {
	of := func(s *mcp.Server) func(*http.Request) *mcp.Server {
		return func(*http.Request) *mcp.Server { return s }
	}
	newest, old := of(forgets(t, attentive())), of(forgets(t, dated(attentive())))
	one := func(json bool) upstream.Target {
		o := &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, JSONResponse: json}
		return upstream.Target{Name: "x", URL: web(t, mcp.NewStreamableHTTPHandler(newest, o))}
	}
	for way, row := range map[string]struct {
		place  upstream.Target
		modern bool
	}{
		"a stream of the newest revision":            {one(false), true},
		"an answer that is no stream":                {one(true), true},
		"sessions":                                   {upstream.Target{Name: "x", URL: web(t, mcp.NewStreamableHTTPHandler(old, nil))}, false},
		"HTTP with SSE":                              {upstream.Target{Name: "x", URL: web(t, mcp.NewSSEHandler(old, nil)), Transport: upstream.TransportSSE}, false},
		"a program of the newest revision":           {program(t, "attentive"), true},
		"a program of an earlier one, with sessions": {program(t, "dated"), false},
	} {
		t.Run(way, func(t *testing.T) {
			l, _ := dial(t, row.place)
			if l.Modern() != row.modern {
				t.Fatalf("it speaks %s", l.Revision())
			}
			c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
			call(t, l, "begun", `{}`)
			c.Cancel(context.Canceled)
			if _, err := c.Next(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("the call ends with %v", err)
			}
			call(t, l, "cancelled", `{}`)
		})
	}
}
