package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// notes is a server with a resource that its tool marks as changed. It reports subscriptions.
func notes(subscribed, left func(uri string)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { subscribed(r.Params.URI); return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { left(r.Params.URI); return nil },
	})
	s.AddTool(&mcp.Tool{Name: "touch", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "lab://note"})
	})
	s.AddResource(&mcp.Resource{URI: "lab://note", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "lab://note", Text: "read me"}}}, nil
	})
	return s
}

func nobody(string) {}

// hosts returns notes servers over HTTP, by transport.
func hosts(t *testing.T, subscribed, left func(uri string)) map[string]*httptest.Server {
	t.Helper()
	hosts := map[string]*httptest.Server{}
	for way, handler := range map[string]func(func(*http.Request) *mcp.Server) http.Handler{
		"sessions": func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewStreamableHTTPHandler(of, nil) },
		"stateless": func(of func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"events": func(of func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(of, nil) },
	} {
		server := forgets(t, notes(subscribed, left))
		hosts[way] = httptest.NewServer(handler(func(*http.Request) *mcp.Server { return server }))
		t.Cleanup(hosts[way].Close)
	}
	return hosts
}

// following returns a pool of one server, and the channels of its notifications.
func following(t *testing.T, target upstream.Target) (pool *upstream.Pool, listed chan struct{}, updated chan string) {
	t.Helper()
	o, _ := options(t)
	listed, updated = make(chan struct{}, 100), make(chan string, 100)
	pool = upstream.NewPool(o, func() { listed <- struct{}{} }, func(name, uri string) { updated <- name + " " + uri })
	t.Cleanup(pool.Close)
	target.Name = "x"
	pool.SetTargets([]upstream.Target{target})
	return pool, listed, updated
}

func TestSubscribe_notification(t *testing.T) {
	places := map[string]upstream.Target{"stdio": program(t, "notes")}
	for way, host := range hosts(t, nobody, nobody) {
		places[way] = upstream.Target{URL: host.URL}
	}
	eras := map[bool]int{}
	for way, target := range places {
		t.Run(way, func(t *testing.T) {
			pool, _, updated := following(t, target)
			pool.Subscribe("x", "lab://note")
			pool.Subscribe("none", "lab://note")
			if err := pool.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			eras[pool.State("x").Revision >= "2026-07-28"]++
			for { // the server confirms later
				c, err := pool.Start(t.Context(), "x", upstream.Request{Method: upstream.MethodTool, Name: "touch"}, nil)
				if err == nil {
					_, err = c.Next(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				select {
				case got := <-updated:
					if got != "x lab://note" {
						t.Errorf("received %q", got)
					}
					return
				default:
				}
			}
		})
	}
	if eras[true] == 0 || eras[false] == 0 {
		t.Errorf("only servers of one era have notified: %v", eras)
	}
}

func TestUnsubscribe(t *testing.T) {
	subscribed, left := make(chan string, 10), make(chan string, 10)
	for way, host := range hosts(t, func(uri string) { subscribed <- uri }, func(uri string) { left <- uri }) {
		t.Run(way, func(t *testing.T) {
			pool, _, _ := following(t, upstream.Target{URL: host.URL})
			for range 2 { // it may be wanted again
				pool.Subscribe("x", "lab://note")
				if got := <-subscribed; got != "lab://note" {
					t.Errorf("subscribed to is %q", got)
				}
				pool.Unsubscribe("x", "lab://note")
				if got := <-left; got != "lab://note" {
					t.Errorf("left is %q", got)
				}
			}
			if err := pool.WaitReady(t.Context()); err != nil || pool.State("x").Listing == nil {
				t.Errorf("the connection is lost: %v", pool.State("x").Err)
			}
		})
	}
}

func TestSubscribe_afterReconnect(t *testing.T) {
	t.Parallel()
	subscribed := make(chan string, 10)
	for way, host := range hosts(t, func(uri string) { subscribed <- uri }, nobody) {
		t.Run(way, func(t *testing.T) {
			pool, _, _ := following(t, upstream.Target{URL: host.URL})
			pool.Subscribe("x", "lab://note")
			<-subscribed
			host.CloseClientConnections()
			<-subscribed
			pool.SetTargets([]upstream.Target{{Name: "x", URL: host.URL, StartTimeout: 1e9}}) // a different target for the pool
			<-subscribed
		})
	}
}

func TestSubscribe_limit(t *testing.T) {
	t.Parallel()
	subscribed := make(chan string, 2000)
	pool, _, _ := following(t, upstream.Target{URL: hosts(t, func(uri string) { subscribed <- uri }, nobody)["sessions"].URL})
	for i := range 1001 {
		pool.Subscribe("x", fmt.Sprintf("lab://note/%04d", i))
	}
	for range 1000 {
		<-subscribed
	}
	pool.Unsubscribe("x", "lab://note/0000")
	pool.Subscribe("x", "lab://one/more")
	if got := <-subscribed; got != "lab://one/more" {
		t.Errorf("subscribed to is %q", got)
	}
}
