package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	protocol "github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/serve"
)

// TestLogging_levels has a client of the official SDK request all levels.
func TestLogging_levels(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(
		`tool "tells" { run = "log.debug('a'); log.info('b'); log.warn('c'); log.error('d'); return 1;" }`)}}}})
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		//lint:ignore SA1019 a client of the era hears so
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			received <- fmt.Sprintf("%s %v", r.Params.Level, r.Params.Data)
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listen(t, frontFor(t, s)) + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 a client of the era asks so
	if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tells"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"debug a", "info b", "warning c", "error d"}
	var got []string
	for range want {
		got = append(got, <-received)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
}

// newLoggingServer is a server with a tool that logs at each level.
func newLoggingServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "talks", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range protocol.LogLevels {
			//lint:ignore SA1019 servers of all revisions log so
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Data: "word"}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	return s
}

// TestLogging_upstreamLevel has clients of both eras receive logs of servers of
// both, at each level.
func TestLogging_upstreamLevel(t *testing.T) {
	one := newLoggingServer()
	for server, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		behind := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		t.Cleanup(behind.Close)
		s, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{federation.New()}, Files: engine.Files{Tools: fstest.MapFS{}, Config: fstest.MapFS{"mcpd.hcl": {Mode: 0o644, Data: []byte(`upstream "lab" { url = "` + behind.URL + `" }`)}}}})
		if err != nil {
			t.Fatal(err)
		}
		endpoint := listen(t, frontFor(t, s)) + "/mcp"
		for _, era := range []string{"2025-11-25", "2026-07-28"} {
			for from, level := range protocol.LogLevels {
				t.Run(server+" "+era+" "+level, func(t *testing.T) {
					var want []string
					for _, severe := range protocol.LogLevels[from:] {
						want = append(want, severe+" word")
					}
					if diff := cmp.Diff(want, receivedLevels(t, endpoint, era, level)); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			}
		}
	}
}

// receivedLevels returns what a client of an era receives from the talker's tool, at a
// level.
func receivedLevels(t *testing.T, endpoint, era, level string) []string {
	received := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		//lint:ignore SA1019 clients hear so
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			received <- fmt.Sprintf("%s %v", r.Params.Level, r.Params.Data)
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	params := &mcp.CallToolParams{Name: "lab_talks", Meta: mcp.Meta{"io.modelcontextprotocol/logLevel": level}}
	if era == "2025-11-25" {
		params.Meta = nil
		//lint:ignore SA1019 a client of the era asks so
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	var all []string
	for word := range received { // the most severe comes last
		if all = append(all, word); strings.HasPrefix(word, "emergency ") {
			break
		}
	}
	return all
}

const failingTools = `
tool "throws" {
  input "pin" {
    type      = string
    sensitive = true
  }
  run = <<JS
    function inner() {
      throw new Error("not today"); // 4711
    }
    inner();
  JS
}
tool "unfit" {
  output "n" { type = integer }
  run = "return { n: 'x' };"
}
tool "fine" {
  run = "return 1;"
}
`

// TestExposeTraces_warning listens on all addresses and on loopback.
func TestExposeTraces_warning(t *testing.T) {
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		log := &syncBuffer{}
		s, err := engine.New(engine.Options{
			Name: "test", Logger: slog.New(slog.NewTextHandler(log, nil)),
			Files: engine.Files{Config: fstest.MapFS{"mcpd.hcl": {Data: []byte("server {\n  expose_traces = true\n}\n"), Mode: 0o644}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		err = serve.New(s, serve.Options{Address: address, InsecureListen: true, OnListen: func(net.Addr) { stop() }}).Run(ctx)
		stop()
		if got := strings.Contains(log.String(), "expose_traces shows script locations"); err != nil || got != warned {
			t.Errorf("%s: warned %v, %v\n%s", address, got, err, log)
		}
	}
}

// TestExposeTraces_allTransports makes the same calls with and without traces.
func TestExposeTraces_allTransports(t *testing.T) {
	// A line of the file contains the caller's sensitive value.
	const thrown = "at inner (tools.d/t.hcl:9:13)\n  9 |       throw new Error(\"not today\"); // [sensitive]\n    |             ^^^\nat body (tools.d/t.hcl:11:5)"
	want := map[bool][]outcome{
		false: {{Code: "EXECUTION_ERROR", Message: "not today"}, {Code: "EXECUTION_ERROR", Message: "the tool's result does not fit its output schema: /n must be an integer, not a string"}, {Value: "1"}, {Code: "INVALID_INPUT"}},
		true: {
			{Code: "EXECUTION_ERROR", Message: "not today", Trace: thrown, NamesFile: true},
			{Code: "EXECUTION_ERROR", Message: "the tool's result does not fit its output schema: /n must be an integer, not a string", Trace: "at unfit (tools.d/t.hcl:14:6)", NamesFile: true},
			{Value: "1"}, {Code: "INVALID_INPUT"},
		},
	}
	for _, open := range transports {
		for exposed, wanted := range want {
			t.Run(open.name, func(t *testing.T) {
				config := ""
				if exposed {
					config = "server {\n  expose_traces = true\n}\n"
				}
				s, err := engine.New(engine.Options{
					Name: "test", Front: serve.Checks{},
					Files: engine.Files{
						Tools:  fstest.MapFS{"t.hcl": {Data: []byte(failingTools), Mode: 0o644}},
						Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				client := open.connect(t, frontFor(t, s))
				got := []outcome{client(oneCall{"throws", `{"pin":"4711"}`}), client(oneCall{"unfit", `{}`}), client(oneCall{"fine", `{}`}), client(oneCall{"throws", `{"pin":1}`})}
				got[3].Message = "" // the message about the arguments
				if diff := cmp.Diff(wanted, got); diff != "" {
					t.Errorf("exposed %v (-want +got)\n%s", exposed, diff)
				}
			})
		}
	}
}
