package engine_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// newLoggingUpstreams returns servers of both protocol eras with a tool that logs one record per level, by
// transport.
func newLoggingUpstreams(t *testing.T) map[string]string {
	s := mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "talks", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 servers of all revisions log so
		for _, level := range []mcp.LoggingLevel{"debug", "info", "notice", "warning", "emergency"} {
			//lint:ignore SA1019 as above
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: string("of " + level)}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	of := func(*http.Request) *mcp.Server { return s }
	return map[string]string{
		"sessions":  web(t, mcp.NewStreamableHTTPHandler(of, nil)),
		"stateless": web(t, mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true})),
	}
}

// logRecorder records the log records of a call.
type logRecorder struct {
	mu    sync.Mutex
	words []string
}

func (h *logRecorder) Log(level, message string, _ json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, level+" "+message)
}

func (h *logRecorder) Progress(float64, *float64, string) {}

func (h *logRecorder) CloseStream() {}

// Calls with and without debug records share one session concurrently.
func TestUpstream_logLevel(t *testing.T) {
	few := []string{"info of info", "notice of notice", "warning of warning", "emergency of emergency"}
	for way, url := range newLoggingUpstreams(t) {
		t.Run(way, func(t *testing.T) {
			s := federated(t, upstreamAt(url))
			var calls sync.WaitGroup
			for i := range 20 {
				debug := i%2 == 1
				calls.Go(func() {
					heard, want := &logRecorder{}, few
					if debug {
						want = append([]string{"debug of debug"}, few...)
					}
					if got := s.Execute(t.Context(), call.Request{Name: "lab_talks", Emit: heard, Debug: debug}); got.Err != nil {
						t.Error(got.Err)
					}
					if diff := cmp.Diff(want, heard.words); diff != "" {
						t.Errorf("with debug %t (-want +got)\n%s", debug, diff)
					}
				})
			}
			calls.Wait()
		})
	}
}
