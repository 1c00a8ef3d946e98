package stdio_test

import (
	"context"
	"io"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// TestTheOfficialClientIsServed connects the client of the go-sdk over a pair
// of pipes, in every revision that it speaks.
func TestTheOfficialClientIsServed(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			b := mcptest.New(mcptest.Tools()...)
			server := mcp.New(b, mcp.Options{Quiet: time.Millisecond})
			clientIn, serverOut := io.Pipe()
			serverIn, clientOut := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- stdio.Serve(context.Background(), server, peer(), serverIn, serverOut, grace) }()

			changed := make(chan struct{}, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { tell(changed, struct{}{}) },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			session, err := client.Connect(ctx, &sdk.IOTransport{Reader: clientIn, Writer: clientOut},
				&sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) != 8 {
				t.Errorf("the list is %v, %v", list, err)
			}
			result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}})
			if err != nil || result.IsError {
				t.Errorf("add returned %+v, %v", result, err)
			}
			if !heardOfChange(ctx, b, changed) {
				t.Error("the client did not hear of the change")
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			clientOut.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := server.Drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// tell tells who listens, unless as much is still to be heard: a client that waited
// for that here would read nothing else.
func tell[T any](listener chan<- T, what T) {
	select {
	case listener <- what:
	default:
	}
}

// heardOfChange publishes other tools until the client hears of it: a client of
// the modern era subscribes on its own time after it has connected.
func heardOfChange(ctx context.Context, b *mcptest.Backend, changed <-chan struct{}) bool {
	for i := 1; ; i++ {
		b.Publish(mcptest.Tools()[:1+i%2]...)
		select {
		case <-changed:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}
