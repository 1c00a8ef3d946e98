package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go SDK runs agent code with tools that elicit input, over a stream of
// the newest and of the oldest revision, with the worker executor.
func TestRunCode_elicitsInAllRevisions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"mcpd.hcl": "codeact {\n  timeout = \"20s\"\n}\n",
		"tools.d/a.hcl": `
tool "greet" {
  timeout = "20s"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const a = await elicit({ message: "Who?", schema: { type: "object", properties: { name: { type: "string" } } } });
    return "hello " + a.content.name;
  JS
}
tool "count" {
  allow {
    kv "seen" { scope = "tool" }
  }
  run = "return await kv.seen.incr('n', 1);"
}
`,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := startDaemon(buildDaemon(t), folder, append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	for i, c := range []struct {
		era       string
		transport mcp.Transport
	}{
		{"newest", &mcp.StreamableClientTransport{Endpoint: d.url + "/mcp"}},
		{"oldest", &mcp.SSEClientTransport{Endpoint: d.url + "/sse"}},
	} {
		t.Run(c.era, func(t *testing.T) { runAsking(t, c.transport, i+1) })
	}
}

// runAsking runs code that increments a counter once, prints, and elicits twice.
func runAsking(t *testing.T, transport mcp.Transport, count int) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
		"code": `const n = await count(); print("counted", n); const said = [await greet(), await greet()]; ({ n, said })`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var ran struct {
		Result struct {
			N    int
			Said []string
		}
		Stdout string
		Calls  []struct{ Tool, Outcome string }
	}
	encoded, _ := json.Marshal(result.StructuredContent)
	if err := json.Unmarshal(encoded, &ran); err != nil || result.IsError {
		t.Fatalf("%v: %s", err, encoded)
	}
	if ran.Result.N != count || len(ran.Result.Said) != 2 || ran.Result.Said[1] != "hello Ada" || len(ran.Calls) != 3 || ran.Calls[2].Outcome != "ok" {
		t.Errorf("got %s", encoded)
	}
}
