package stdio_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzLines sends one line and then a ping. The line gets the reply computed
// with encoding/json, and the ping gets its response.
func FuzzLines(f *testing.F) {
	const limit = 4 << 10
	for _, text := range mcptest.FuzzSeeds() {
		f.Add([]byte(text))
		f.Add([]byte(text + "\r"))
	}
	f.Add(bytes.Repeat([]byte(" "), limit+1))
	f.Add(bytes.Repeat([]byte("x"), 70<<10)) // more than one read
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return // several lines
		}
		s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{Limits: jsonguard.Limits{Bytes: limit}})
		defer func() { _ = s.Drain(context.Background()) }()
		var out bytes.Buffer
		in := string(line) + "\n" + `{"jsonrpc":"2.0","id":"last","method":"ping"}` + "\n"
		if err := stdio.Serve(t.Context(), s, peer(), strings.NewReader(in), &out, options); err != nil {
			t.Fatal(err)
		}
		replies, ok := mcptest.Replies(strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
		if !ok {
			t.Fatalf("the server wrote %q", out.String())
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		var want []mcptest.Expected
		if len(line) > limit || len(bytes.TrimSpace(line)) > 0 {
			passes := jsonguard.Check(line, jsonguard.Limits{Bytes: limit}) == nil
			if e := mcptest.Expect(line, passes); e.Reply && !e.BadParams {
				want = append(want, e)
			}
		}
		want = append(want, mcptest.Expected{Reply: true, ID: `"last"`, Ping: true})
		for _, e := range want {
			i := 0
			for i < len(replies) && !e.Fits(replies[i]) {
				i++
			}
			if i == len(replies) {
				t.Fatalf("no reply matches %+v in %q", e, out.String())
			}
			replies = append(replies[:i], replies[i+1:]...)
		}
		if len(replies) > 0 {
			t.Fatalf("unexpected replies %+v", replies)
		}
	})
}

// TestGoSDK connects the client of the go-sdk over a pair of pipes, in every
// revision that it supports.
func TestGoSDK(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			b := mcptest.New(mcptest.Tools()...)
			server := mcp.New(b, mcp.Options{Debounce: time.Millisecond})
			clientIn, serverOut := io.Pipe()
			serverIn, clientOut := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- stdio.Serve(context.Background(), server, peer(), serverIn, serverOut, options) }()

			changed := make(chan struct{}, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { trySend(changed, struct{}{}) },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			session, err := client.Connect(ctx, &sdk.IOTransport{Reader: clientIn, Writer: clientOut},
				&sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if list, err := session.ListTools(ctx, nil); err != nil || len(list.Tools) != 8 {
				t.Errorf("list = %v, %v", list, err)
			}
			result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}})
			if err != nil || result.IsError {
				t.Errorf("add returned %+v, %v", result, err)
			}
			if !waitForChange(ctx, b, changed) {
				t.Error("the client received no notification")
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			clientOut.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := server.Drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// trySend sends to the listener unless its buffer is full: a client that blocked
// here would read nothing else.
func trySend[T any](listener chan<- T, what T) {
	select {
	case listener <- what:
	default:
	}
}

// waitForChange publishes other tools until the client is notified: a modern
// client subscribes at some time after it has connected.
func waitForChange(ctx context.Context, b *mcptest.Backend, changed <-chan struct{}) bool {
	for i := 1; ; i++ {
		b.Publish(mcptest.Tools()[:1+i%2]...)
		select {
		case <-changed:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}
