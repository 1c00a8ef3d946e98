package engine_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// newCountingUpstream serves a server, and counts its requests.
func newCountingUpstream(t *testing.T, s *mcp.Server) (url string, requests *atomic.Int32) {
	requests = &atomic.Int32{}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	return web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		h.ServeHTTP(w, r)
	})), requests
}

func TestLazyUpstream_connectsOnCall(t *testing.T) {
	url, requests := newCountingUpstream(t, newTestUpstream())
	lock, block := newLock(t), upstreamAt(url, "lazy = true")
	first := pinnedServer(t, lock, block) // nothing is accepted yet
	all := names(first)
	if len(all) == 0 || requests.Load() == 0 {
		t.Fatalf("%q are pinned after %d requests", all, requests.Load())
	}
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	requests.Store(0)
	s := pinnedServer(t, lock, block)
	if diff := cmp.Diff(all, names(s)); diff != "" || requests.Load() > 0 {
		t.Fatalf("after %d requests (-want +got)\n%s", requests.Load(), diff)
	}
	status := s.Status()
	if !status.Healthy() || !status.Upstreams[0].Idle || status.Upstreams[0].Up {
		t.Errorf("the status is %q, %+v", status.Health(), status.Upstreams)
	}
	if got := executeCall(t, s, tool("lab_sum", `{"a":2}`)); string(got.Structured) != `{"sum":4}` {
		t.Errorf("the first call ends with %s", outcomeLine(got))
	}
	if status := s.Status(); status.Upstreams[0].Idle || !status.Upstreams[0].Up {
		t.Errorf("then the status is %+v", status.Upstreams)
	}
	waitForSnapshot(t, s, func() bool { return len(s.Snapshot().Offers(call.Prompts)) > 0 }) // prompts are not in the lock file
	if diff := cmp.Diff(all, names(s)); diff != "" {
		t.Errorf("then (-want +got)\n%s", diff)
	}
}

func TestLazyUpstream_changedTool(t *testing.T) {
	inner, calls := mcp.NewServer(&mcp.Implementation{Name: "shy", Version: "1"}, nil), &atomic.Int32{}
	add := func(input json.RawMessage) {
		inner.AddTool(&mcp.Tool{Name: "write", InputSchema: input}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	}
	add(anyInput)
	url, _ := newCountingUpstream(t, inner)
	lock, block := newLock(t), upstreamAt(url, "lazy = true")
	acceptTools(t, lock, block)
	add(other)
	s := pinnedServer(t, lock, block)
	got := outcomeLine(executeCall(t, s, tool("lab_write", `{}`)))
	if !strings.HasPrefix(got, "EXECUTION_ERROR: this tool has changed on the upstream server") || calls.Load() > 0 {
		t.Errorf("after %d calls the result is %s", calls.Load(), got)
	}
	for range 50 { // some run before the current offers are served
		go executeCall(t, s, tool("lab_write", `{}`))
		executeCall(t, s, tool("lab_write", `{}`))
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("the tool was called %d times", n)
	}
	waitForSnapshot(t, s, func() bool { return slices.Equal(s.Status().Upstreams[0].Quarantined, []string{"lab_write"}) })
}

func TestLazyUpstream_unreachable(t *testing.T) {
	up, lock := newChangingUpstream(t, "read"), newLock(t)
	acceptTools(t, lock, upstreamAt(up.url))
	s := pinnedServer(t, lock, upstreamAt("http://127.0.0.1:1/mcp", "lazy = true"))
	if diff := cmp.Diff([]string{"lab_read"}, names(s)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	if got := outcomeLine(executeCall(t, s, tool("lab_read", `{}`))); !strings.HasPrefix(got, "EXECUTION_ERROR: the upstream server cannot be reached now") {
		t.Errorf("the call ends with %s", got)
	}
	waitForSnapshot(t, s, func() bool { return len(names(s)) == 0 })
	if got := s.Status().Health(); got != "not reached: lab" {
		t.Errorf("the status is %q", got)
	}
}

func TestLazyUpstream_blockChanged(t *testing.T) {
	up, lock := newChangingUpstream(t, "read", "write"), newLock(t)
	acceptTools(t, lock, upstreamAt(up.url))
	config := files("mcpd.hcl", upstreamAt(up.url, "lazy = true"))
	s := server(t, engine.Options{Files: engine.Files{Config: config, LockPath: lock}})
	before := s.Snapshot().Tool("lab_read")
	if !s.Status().Upstreams[0].Idle {
		t.Fatal("the server is connected at once")
	}
	config["mcpd.hcl"] = files("mcpd.hcl", upstreamAt(up.url, "lazy = false"))["mcpd.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitForSnapshot(t, s, func() bool { return s.Status().Upstreams[0].Up && len(names(s)) == 2 })
	if before == nil {
		t.Error("the tool was not served before")
	}
}

func TestLazyUpstream_sameTool(t *testing.T) {
	up, lock := newChangingUpstream(t, "read"), newLock(t)
	acceptTools(t, lock, upstreamAt(up.url))
	s := pinnedServer(t, lock, upstreamAt(up.url, "lazy = true"))
	revision := s.Snapshot().Revision()
	if got := executeCall(t, s, tool("lab_read", `{}`)); got.Err != nil {
		t.Fatal(got.Err)
	}
	if _, err := s.Load(t.Context()); err != nil { // with its own metadata
		t.Fatal(err)
	}
	if s.Status().Upstreams[0].Idle || s.Snapshot().Revision() != revision {
		t.Errorf("the revision was %s, and is %s", revision, s.Snapshot().Revision())
	}
}

// The program keeps the tools of the snapshot that it started with.
func TestCode_changedUpstreamTool(t *testing.T) {
	up := newChangingUpstream(t, "read", "write")
	s := pinnedServer(t, newLock(t), upstreamAt(up.url)+"codeact {}\n")
	err := engine.AddTool(s, engine.ToolOptions{Name: "change", Timeout: time.Minute}, func(context.Context, identity.Agent, struct{}) (string, error) {
		up.add("write", other)
		waitForSnapshot(t, s, func() bool { return len(s.Status().Upstreams[0].Quarantined) > 0 })
		return "done", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := executeCall(t, s, tool("run_code", `{"code":"const first = await lab.write({}); await change({}); try { await lab.write({}) } catch (e) { return [first, await lab.read({}), e.code, e.message] }"}`))
	const want = `["write","read","EXECUTION_ERROR","this tool has changed on the upstream server: list the tools again"]`
	if !strings.Contains(string(got.Structured), want) {
		t.Errorf("it ends with %s", outcomeLine(got)+string(got.Structured))
	}
}
