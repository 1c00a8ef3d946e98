package upstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// growing is a server with a tool that adds an entry of the kind in its argument, once there is
// a client to notify.
func growing() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "growing", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true},
		},
	})
	heard := make(chan struct{})
	once := sync.OnceFunc(func() { close(heard) })
	hears := func(sign string) mcp.Middleware {
		return func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == sign {
					defer once()
				}
				return next(ctx, method, r)
			}
		}
	}
	s.AddReceivingMiddleware(hears("notifications/initialized"))
	s.AddSendingMiddleware(hears("notifications/subscriptions/acknowledged"))
	object := json.RawMessage(`{"type":"object"}`)
	add := map[string]func(){
		"tool":     func() { s.AddTool(&mcp.Tool{Name: "more", InputSchema: object}, nil) },
		"prompt":   func() { s.AddPrompt(&mcp.Prompt{Name: "more"}, nil) },
		"resource": func() { s.AddResource(&mcp.Resource{URI: "lab://more", Name: "more"}, nil) },
	}
	s.AddTool(&mcp.Tool{Name: "add", InputSchema: object}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-heard
		var kind string
		err := json.Unmarshal(r.Params.Arguments, &struct{ Kind *string }{&kind})
		if err == nil {
			add[kind]()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, err
	})
	return s
}

// lengths returns the lengths of all lists, by kind.
func lengths(l *upstream.Listing) map[string]int {
	return map[string]int{"tool": len(l.Tools), "prompt": len(l.Prompts), "resource": len(l.Resources)}
}

func TestPool_listChanged(t *testing.T) {
	t.Parallel()
	for way, row := range map[string]struct {
		handler func(func(*http.Request) *mcp.Server) http.Handler // nil is a program
		modern  bool
	}{
		"listens": {func(of func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true})
		}, true},
		"sessions": {func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewStreamableHTTPHandler(of, nil) }, false},
		"events":   {func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(of, nil) }, false},
		"program":  {nil, true},
	} {
		for _, kind := range []string{"tool", "prompt", "resource"} {
			t.Run(way+" "+kind, func(t *testing.T) {
				t.Parallel()
				target := program(t, "growing")
				if row.handler != nil {
					s := forgets(t, growing())
					if !row.modern {
						dated(s)
					}
					target = upstream.Target{URL: web(t, row.handler(func(*http.Request) *mcp.Server { return s }))}
				}
				target.Name = "x"
				pool, listed := newPool(t)
				pool.SetTargets([]upstream.Target{target})
				until(t, listed, func() bool { return pool.State("x").Listing != nil })
				if got := pool.State("x").Revision >= "2026-07-28"; got != row.modern {
					t.Fatalf("it speaks %s", pool.State("x").Revision)
				}
				want := lengths(pool.State("x").Listing)
				want[kind]++
				c, err := pool.Start(t.Context(), "x", upstream.Request{Method: upstream.MethodTool, Name: "add", Arguments: json.RawMessage(`{"kind":"` + kind + `"}`)}, nil)
				if err == nil {
					_, err = c.Next(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				until(t, listed, func() bool { return lengths(pool.State("x").Listing)[kind] == want[kind] })
			})
		}
	}
}
