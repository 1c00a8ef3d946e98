package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func TestUpstream_duplicateListsBounded(t *testing.T) {
	const many = 2000
	up := mcp.NewServer(&mcp.Implementation{Name: "many", Version: "1"}, nil)
	for i := range many {
		up.AddResource(&mcp.Resource{URI: fmt.Sprintf("many://%d", i), Name: fmt.Sprint("r", i)}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, nil
		})
	}
	url := web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, nil))
	s := federated(t, upstreamAt(url)+upstreamNamed("twin", url))
	if told := warnings(s); len(told) != 21 || !slices.Contains(told, `1980 more items of the upstream "twin" are left out`) {
		t.Errorf("%d warnings, the first ones are %q", len(told), told[:min(len(told), 30)])
	}
	if n := len(s.Snapshot().Offers(call.Resources)); n != many {
		t.Errorf("%d resources are served", n)
	}
	if twin := s.Status().Upstreams[1]; twin.NotServed != many || len(twin.LeftOut) != 100 {
		t.Errorf("the status counts %d, and names %d", twin.NotServed, len(twin.LeftOut))
	}
}

// newLargeUpstream returns a server with three tools more than the limit.
func newLargeUpstream(t *testing.T) (url string) {
	up := mcp.NewServer(&mcp.Implementation{Name: "many", Version: "1"}, &mcp.ServerOptions{PageSize: 1000})
	for i := range 2003 {
		up.AddTool(&mcp.Tool{Name: fmt.Sprintf("t%04d", i), InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	return web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, nil))
}

func TestUpstream_maxTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: much text, and no more goroutines than a small list has")
	}
	s := pinnedServer(t, newLock(t), upstreamAt(newLargeUpstream(t)))
	if all := names(s); len(all) != 2000 || all[1999] != "lab_t1999" {
		t.Errorf("%d tools are offered, at last %q", len(all), all[len(all)-1])
	}
	if told := warnings(s); !slices.Contains(told, `upstream "lab": 3 tools are left out: the limit is 2000`) {
		t.Errorf("the warnings are %q", told)
	}
	if lab := s.Status().Upstreams[0]; lab.NotServed != 3 || !slices.Contains(lab.LeftOut, "tool lab_t2002: an upstream can offer at most 2000") {
		t.Errorf("the status counts %d: %q", lab.NotServed, lab.LeftOut)
	}
	if drifts := s.Inside().Drifts(); len(drifts[0].Changes) > 0 {
		t.Errorf("tools beyond the limit differ from the lock file: %v", drifts[0].Changes)
	}
}

func TestUpstream_maxToolsAfterFilter(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: much text, and no more goroutines than a small list has")
	}
	url := newLargeUpstream(t)
	for _, pin := range []string{"first", "off"} {
		s := pinnedServer(t, newLock(t), upstreamAt(url, `include = ["t2000", "t2002"]`, fmt.Sprintf("pin = %q", pin)))
		if all, left := names(s), s.Status().Upstreams[0].NotServed; !slices.Equal(all, []string{"lab_t2000", "lab_t2002"}) || left > 0 {
			t.Errorf("%s: %d tools are offered, and %d left out", pin, len(all), left)
		}
	}
}

// Every entry that is left out is counted, whatever the reason.
func TestStatus_countsLeftOut(t *testing.T) {
	url := newRawUpstream(t, `{"name":"good","inputSchema":{"type":"object"}}, 7, {"name":"good","inputSchema":{"type":"object"},"description":"Another"},
		{"name":"no good","inputSchema":{"type":"object"}}, {"name":"bad","inputSchema":7}`)
	lab := federated(t, upstreamAt(url, `pin = "off"`)).Status().Upstreams[0]
	want := []string{
		"tool lab_: it is not an object", "tool lab_good: it is listed twice", `tool lab_no good: no tool can be called "lab_no good" here; rename it`,
		"tool lab_bad: its inputSchema is not an object schema",
	}
	if diff := cmp.Diff(want, lab.LeftOut); diff != "" || lab.NotServed != len(want) {
		t.Errorf("%d are left out (-want +got)\n%s", lab.NotServed, diff)
	}
}

func TestUpstream_controlCharactersInURI(t *testing.T) {
	up := mcp.NewServer(&mcp.Implementation{Name: "veiled", Version: "1"}, nil)
	read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil }
	for i, uri := range []string{"lab://\u009b31mred", "lab://\u202etxt.exe", "lab://übung"} {
		up.AddResource(&mcp.Resource{URI: uri, Name: fmt.Sprint("r", i)}, read)
	}
	s := federated(t, upstreamAt(web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, nil))))
	var offered []string
	for _, o := range s.Snapshot().Offers(call.Resources) {
		offered = append(offered, o.Metadata().Address)
	}
	if !slices.Equal(offered, []string{"lab://übung"}) {
		t.Errorf("offered are %q", offered)
	}
}

// Short notifications still pass, and so does progress.
func TestUpstream_notificationsBounded(t *testing.T) {
	up := mcp.NewServer(&mcp.Implementation{Name: "talks", Version: "1"}, nil)
	up.AddTool(&mcp.Tool{Name: "talks", InputSchema: anyInput}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 20 {
			//lint:ignore SA1019 servers of all revisions log so
			_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: map[string]string{"long": strings.Repeat("x", 100<<10)}})
		}
		//lint:ignore SA1019 as above
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "short"})
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	var log syncBuffer
	s := server(t, engine.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Files:  engine.Files{Config: files("mcpd.hcl", upstreamAt(web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, &mcp.StreamableHTTPOptions{Stateless: true}))))},
	})
	heard, r := &notificationRecorder{}, tool("lab_talks", `{}`)
	r.Emit = heard
	if got := outcomeLine(executeCall(t, s, r)); got != "[]" {
		t.Fatalf("the call ends with %s", got)
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if n := len(log.String()); n < 1_000_000 || n > 1_200_000 {
		t.Errorf("%d bytes are logged", n)
	}
	want := []string{"warning the upstream server sends more notifications for this call than mcpd forwards: some are dropped", "info short", "progress half"}
	if got := heard.lines[10:]; !slices.Equal(got, want) {
		t.Errorf("after the long record the caller gets %q", got)
	}
}
