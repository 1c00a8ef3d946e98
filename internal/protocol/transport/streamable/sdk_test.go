package streamable_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestGoSDK runs the client of the go-sdk through a tour, in every revision
// that it supports.
func TestGoSDK(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			s := newSite(t, streamable.Options{})
			changed, progress := make(chan struct{}, 10), make(chan float64, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { trySend(changed, struct{}{}) },
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					progress <- r.Params.Progress
				},
			})
			session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.web.URL, HTTPClient: s.web.Client()},
				&sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			tour(t, session, s.backend, changed, progress)
		})
	}
}

// trySend sends to the listener unless its buffer is full: a client that blocked
// here would read nothing else.
func trySend[T any](listener chan<- T, what T) {
	select {
	case listener <- what:
	default:
	}
}

// tour lists, calls, receives progress, fails, and receives a change.
func tour(t *testing.T, session *sdk.ClientSession, b *mcptest.Backend, changed <-chan struct{}, progress <-chan float64) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	list, err := session.ListTools(ctx, nil)
	if err != nil || len(list.Tools) != 8 {
		t.Fatalf("list = %v, %v", list, err)
	}
	call := func(name string, arguments any) *sdk.CallToolResult {
		t.Helper()
		params := &sdk.CallToolParams{Name: name, Arguments: arguments}
		if name == "steps" {
			params.SetProgressToken("token")
		}
		result, err := session.CallTool(ctx, params)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := call("add", map[string]any{"a": 1, "b": 2}); got.IsError || got.Content[0].(*sdk.TextContent).Text != "3" {
		t.Errorf("add returned %+v", got)
	}
	if got := call("fail", map[string]any{"how": "deny"}); !got.IsError || got.Content[0].(*sdk.TextContent).Text != "Blocked in prod" {
		t.Errorf("fail returned %+v", got)
	}
	call("steps", nil)
	var steps []float64
	for len(steps) < 3 {
		select {
		case step := <-progress:
			steps = append(steps, step)
		case <-ctx.Done():
			t.Fatalf("progress = %v", steps)
		}
	}
	if diff := cmp.Diff([]float64{0, 50, 100}, steps); diff != "" {
		t.Error(diff)
	}
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "nope"}); err == nil {
		t.Error("an unknown tool was called")
	}
	// A modern client subscribes at some time after it has connected, so the
	// change is published until it is notified.
	for received := false; !received; {
		b.Publish(mcptest.Tools()...)
		b.Publish(mcptest.Tools()[:2]...)
		select {
		case <-changed:
			received = true
		case <-ctx.Done():
			t.Fatal("the client received no notification")
		case <-time.After(100 * time.Millisecond):
			b.Publish(mcptest.Tools()[:1]...)
		}
	}
	b.Publish(mcptest.Tools()[:2]...)
	if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) != 2 {
		t.Errorf("list = %v, %v", list, err)
	}
}
