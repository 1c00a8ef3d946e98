package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// loggingTool returns a tool that reports n steps, and closes ended when it is done.
func loggingTool(n int, ended chan<- struct{}) mcptest.Tool {
	return mcptest.Tool{
		ToolInfo: mcp.ToolInfo{Name: "chatty", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Run: func(_ context.Context, r call.Request) call.Result {
			for i := range n {
				r.Emit.Progress(float64(i), nil, "")
				r.Emit.Log("info", "step", nil)
			}
			close(ended)
			return mcptest.Text("Done.")
		},
	}
}

const callChatty = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chatty","_meta":{"progressToken":1,` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}}`

func TestCallNotifier_dropsForSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ended, reads := make(chan struct{}), make(chan struct{})
		s, _ := newServer(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, loggingTool(5000, ended))
		var sent recorder
		x := exchange("tools/call", "chatty")
		x.Peer.Headers.Set("X-Request-Id", "r-7")
		x.Emit = func(f mcp.Frame) error {
			<-reads
			return sent.send(f)
		}
		answered := make(chan mcp.Reply, 1)
		go func() { answered <- s.Exchange(t.Context(), []byte(callChatty), x) }()

		<-ended // before anything is read
		close(reads)
		if r := <-answered; !strings.Contains(r.Frame.String(), "Done.") {
			t.Errorf("reply = %s", r.Frame)
		}
		frames := sent.all()
		if n := len(frames); n < 100 || n > 1100 {
			t.Errorf("%d messages are queued", n)
		}
		for i, f := range frames[:100] {
			want := fmt.Sprintf(`"progress":%d}`, i/2)
			if i%2 == 1 {
				want = `"data":"step"`
			}
			if !strings.Contains(f, want) {
				t.Fatalf("message %d = %s", i, f)
			}
		}
		if want := fmt.Sprintf("tool=chatty dropped=%d request_id=r-7\n", 10_000-len(frames)); !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, &log)
		}
	})
}

func TestCallNotifier_drainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s, _ := newServer(t, mcp.Options{}, loggingTool(100, ended))
		x := exchange("tools/call", "chatty")
		x.Emit = func(mcp.Frame) error {
			<-time.After(1500 * time.Millisecond)
			return nil
		}
		answered := make(chan mcp.Reply, 1)
		go func() { answered <- s.Exchange(t.Context(), []byte(callChatty), x) }()
		<-ended
		started := time.Now()
		<-answered
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("the response took %s, want the time of two messages", took)
		}
	})
}

func TestCallNotifier_cancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, reads := make(chan struct{}), make(chan struct{})
		s, _ := newServer(t, mcp.Options{}, loggingTool(100, ended))
		ctx, cancel := context.WithCancel(t.Context())
		var sent recorder
		x := exchange("tools/call", "chatty")
		x.Emit = func(f mcp.Frame) error {
			<-reads
			return sent.send(f)
		}
		answered := make(chan mcp.Reply, 1)
		go func() { answered <- s.Exchange(ctx, []byte(callChatty), x) }()
		<-ended
		cancel()
		close(reads)
		<-answered
		if frames := sent.all(); len(frames) > 1 {
			t.Errorf("got %d messages, want none", len(frames))
		}
	})
}
