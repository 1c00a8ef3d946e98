package serve_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
)

// TestAClientHearsEveryLevelThatABodyLogs has a client of the official SDK ask for all.
func TestAClientHearsEveryLevelThatABodyLogs(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(
		`tool "tells" { run = "log.debug('a'); log.info('b'); log.warn('c'); log.error('d'); return 1;" }`)}}})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		//lint:ignore SA1019 a client of the era hears so
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			heard <- fmt.Sprintf("%s %v", r.Params.Level, r.Params.Data)
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listen(t, frontFor(t, s)) + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 a client of the era asks so
	if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tells"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"debug a", "info b", "warning c", "error d"}
	var got []string
	for range want {
		got = append(got, <-heard)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
}
