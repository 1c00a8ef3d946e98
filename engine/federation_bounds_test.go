package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

func TestUpstream_bounds(t *testing.T) {
	up := newChangingUpstream(t)
	cancelled := up.addWaitingTool()
	for _, name := range []string{"long", "longer"} {
		up.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 8<<10)}}}, nil
		})
	}
	s := federated(t, upstreamAt(up.url, `timeout = "1h"`, "limits {\n    output = \"4KiB\"\n  }",
		"override \"waits\" {\n    timeout = \"50ms\"\n  }", "override \"longer\" {\n    limits {\n      output = \"16KiB\"\n    }\n  }"))
	if got := outcomeLine(executeCall(t, s, tool("lab_waits", `{}`))); got != "TIMEOUT: the tool did not end within its timeout of 50ms" {
		t.Errorf("a call that takes long ends with %s", got)
	}
	<-cancelled
	if got := outcomeLine(executeCall(t, s, tool("lab_long", `{}`))); got != "EXECUTION_ERROR: the result has more than 4096 bytes" {
		t.Errorf("a long result: %.200s", got)
	}
	if got := executeCall(t, s, tool("lab_longer", `{}`)); got.Err != nil {
		t.Errorf("a result that its own bounds let pass: %v", got.Err)
	}
}

func TestUpstream_auditInputRequests(t *testing.T) {
	up := newChangingUpstream(t)
	up.AddTool(&mcp.Tool{Name: "asks", InputSchema: anyInput}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var last error
		for range 3 {
			if _, last = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}); last != nil {
				break
			}
		}
		return nil, last
	})
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := federated(t, auditBlock(path, "")+upstreamAt(up.url, `ask = ["elicit"]`, `max_rounds = 2`))
	r := askableCall("lab_asks")
	for range 2 {
		got := executeCall(t, s, r)
		if got.Ask == nil {
			t.Fatalf("no input request: %s", outcomeLine(got))
		}
		r = askableCall("lab_asks")
		r.Resume = respond(got.Ask, `{}`)
	}
	if got := outcomeLine(executeCall(t, s, r)); !strings.Contains(got, "the call has sent 2 input requests, the maximum of its grant") {
		t.Errorf("an excess input request: %s", got)
	}
	var outcomes []string
	for _, l := range outcomesOf(t, s, path) {
		outcomes = append(outcomes, l.Outcome+" "+l.Tool)
	}
	if got := strings.Join(outcomes, ", "); got != "input_required lab_asks, input_required lab_asks, EXECUTION_ERROR lab_asks" {
		t.Errorf("the log has %s", got)
	}
}

func TestUpstream_concurrency(t *testing.T) {
	up := newChangingUpstream(t)
	up.AddTool(&mcp.Tool{Name: "add", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	callInParallel(t, federated(t, upstreamAt(up.url, "limits {\n    concurrency = 1\n  }")), "lab_add")
}

func TestUpstream_invalidArguments(t *testing.T) {
	up := newChangingUpstream(t)
	var reached atomic.Int32
	up.AddTool(&mcp.Tool{Name: "add", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			reached.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	s := federated(t, upstreamAt(up.url))
	for _, arguments := range []string{`{}`, `{"n":"1"}`, `{"n":1.5}`, `{"n":1,"m":2}`, `[]`, `{"n":1`} {
		if got := executeCall(t, s, tool("lab_add", arguments)); got.Err == nil || got.Err.Code != call.InvalidInput {
			t.Errorf("%s: the call ends with %s", arguments, outcomeLine(got))
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d calls reached the upstream", n)
	}
	if got := executeCall(t, s, tool("lab_add", `{"n":1}`)); got.Err != nil || reached.Load() != 1 {
		t.Errorf("one that fits ends with %s, the %dth", outcomeLine(got), reached.Load())
	}
}
