package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
)

// newMetaUpstreams returns servers of both protocol eras with a tool that returns the _meta of its call.
func newMetaUpstreams(t *testing.T) map[string]string {
	s := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "meta", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Meta}, nil
	})
	of := func(*http.Request) *mcp.Server { return s }
	return map[string]string{
		"sessions":  web(t, mcp.NewSSEHandler(of, nil)),
		"stateless": web(t, mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true})),
	}
}

// ofTheProtocol are the standard members of _meta. A server of both eras may be called with either
// revision.
var ofTheProtocol = []string{
	"progressToken", "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/protocolVersion",
}

// An upstream gets the trace of the caller with the span of the call in _meta, and no other data of
// the caller. Without tracing it gets nothing.
func TestUpstream_traceparent(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for way, url := range newMetaUpstreams(t) {
		t.Run(way, func(t *testing.T) {
			var console bytes.Buffer
			traced := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(url)), LookupEnv: onConsole}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{Console: &console})}})
			r := tool("lab_meta", `{}`)
			r.Trace = call.Trace{Parent: "00-" + trace + "-b7ad6b7169203331-01", State: "a=b"}
			with, without := metaOf(t, traced, r), metaOf(t, federated(t, upstreamAt(url)), r)
			if err := traced.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, s := range spansOf(t, &console) {
				ids = append(ids, "00-"+s.Trace+"-"+s.ID+"-01")
			}
			if parent, _ := with["traceparent"].(string); !slices.Contains(ids, parent) || !strings.Contains(parent, trace) {
				t.Errorf("the server got %v, and the spans are %q", with, ids)
			}
			delete(with, "traceparent")
			for _, told := range []map[string]any{with, without} {
				for _, name := range slices.Sorted(maps.Keys(told)) {
					if !slices.Contains(ofTheProtocol, name) {
						t.Errorf("the server also got %s", name)
					}
				}
			}
		})
	}
}

// metaOf returns the _meta that the upstream of a call gets.
func metaOf(t *testing.T, s *engine.Server, r call.Request) (meta map[string]any) {
	t.Helper()
	answer := executeCall(t, s, r)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	if err := json.Unmarshal(answer.Structured, &meta); err != nil {
		t.Fatal(err)
	}
	return meta
}
