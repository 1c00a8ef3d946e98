package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// instant is a backend that answers without any work.
type instant struct{}

func (instant) Info() mcp.Info                                            { return mcp.Info{Name: "instant", Version: "1"} }
func (instant) List(context.Context, call.Kind, identity.Caller) mcp.List { return mcp.List{} }
func (instant) Watch(func([]string)) func()                               { return func() {} }
func (instant) WatchResource(string) (leave func())                       { return func() {} }
func (instant) CanRead(context.Context, identity.Caller, string) bool     { return true }
func (instant) Find(context.Context, identity.Caller, string) *mcp.Entry  { return nil }
func (instant) Call(context.Context, call.Request) (call.Result, *mcp.Task) {
	return call.Result{Content: json.RawMessage(`[{"type":"text","text":"3"}]`), Structured: json.RawMessage(`{"sum":3}`)}, nil
}

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func BenchmarkCall(b *testing.B) {
	s := mcp.New(instant{}, mcp.Options{})
	defer func() { _ = s.Drain(b.Context()) }()
	benchmark(b, streamable.New(s, streamable.Options{}))
}

// BenchmarkBareHandler is the baseline: only net/http and encoding/json.
func BenchmarkBareHandler(b *testing.B) {
	benchmark(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  struct {
				Name      string             `json:"name"`
				Arguments map[string]float64 `json:"arguments"`
				Meta      map[string]any     `json:"_meta"`
			} `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": in.ID, "result": map[string]any{
			"content":           []map[string]any{{"type": "text", "text": "3"}},
			"structuredContent": map[string]any{"sum": in.Params.Arguments["a"] + in.Params.Arguments["b"]},
		}})
		if err != nil {
			b.Error(err)
		}
	}))
}

func benchmark(b *testing.B, h http.Handler) {
	web := httptest.NewServer(h)
	defer web.Close()
	client := web.Client()
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequest(http.MethodPost, web.URL, bytes.NewReader([]byte(benchCall)))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"add"},
		}
		response, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response.Status, err)
		}
		response.Body.Close()
	}
}
