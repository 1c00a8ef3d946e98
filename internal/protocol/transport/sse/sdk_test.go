package sse_test

import (
	"context"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

// TestTheOfficialClientIsServed connects the client of the go-sdk, in every
// revision that has a handshake.
func TestTheOfficialClientIsServed(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			b := mcptest.New(mcptest.Tools()...)
			server := mcp.New(b, mcp.Options{Quiet: time.Millisecond})
			web := serve(t, server, sse.Options{})
			changed, steps := make(chan struct{}, 10), make(chan float64, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					steps <- r.Params.Progress
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			session, err := client.Connect(ctx, &sdk.SSEClientTransport{Endpoint: web.URL + "/sse", HTTPClient: web.Client()},
				&sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("the revision is %s", got)
			}
			if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) != 8 {
				t.Errorf("the list is %v, %v", list, err)
			}
			params := &sdk.CallToolParams{Name: "steps"}
			params.SetProgressToken("token")
			if result, err := session.CallTool(ctx, params); err != nil || result.IsError {
				t.Errorf("steps returned %+v, %v", result, err)
			}
			for _, want := range []float64{0, 50, 100} {
				if got := <-steps; got != want {
					t.Errorf("the progress is %v, want %v", got, want)
				}
			}
			b.Publish(mcptest.Tools()[:2]...)
			<-changed
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if err := server.Drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
