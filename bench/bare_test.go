package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

type addIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOut struct {
	Sum float64 `json:"sum"`
}

// native returns a server with one tool in Go.
func native(tb testing.TB) *engine.Server {
	tb.Helper()
	s, err := engine.New(engine.Options{Name: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	err = engine.AddTool(s, engine.ToolOptions{Name: "add"}, func(_ context.Context, _ identity.Agent, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// bare is the yardstick: the same call with net/http and encoding/json, and
// nothing else. It checks nothing.
func bare(w http.ResponseWriter, r *http.Request) {
	var in struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  struct {
			Name      string         `json:"name"`
			Arguments addIn          `json:"arguments"`
			Meta      map[string]any `json:"_meta"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := addOut{in.Params.Arguments.A + in.Params.Arguments.B}
	text, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": in.ID, "result": map[string]any{
		"resultType":        "complete",
		"content":           []map[string]any{{"type": "text", "text": string(text)}},
		"structuredContent": out,
		"_meta":             map[string]any{"io.modelcontextprotocol/serverInfo": map[string]string{"name": "bench", "version": ""}},
	}})
}

// BenchmarkNative compares a modern call of a tool in Go with the bare handler,
// over connections of net/http.
func BenchmarkNative(b *testing.B) {
	front := serve.New(native(b), serve.Options{})
	handler, err := front.Handler()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = front.Shutdown(context.Background()) })
	for name, h := range map[string]http.Handler{"mcpd": handler, "bare": http.HandlerFunc(bare)} {
		b.Run(name, func(b *testing.B) { overHTTP(b, h) })
	}
}

func overHTTP(b *testing.B, h http.Handler) {
	web := httptest.NewServer(h)
	defer web.Close()
	client := web.Client()
	body := []byte(modern("tools/call", `"name":"add","arguments":{"a":1,"b":2},`))
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequest(http.MethodPost, web.URL+"/mcp", bytes.NewReader(body))
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
