package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// programs are the programs that the test binary can be, by first argument.
var programs = map[string]func(){
	"lab":   func() { _ = lab(nil).Run(context.Background(), &mcp.StdioTransport{}) },
	"notes": func() { _ = notes(nobody, nobody).Run(context.Background(), &mcp.StdioTransport{}) },
	// noisy writes other lines before and between messages.
	"noisy": func() {
		fmt.Println("starting up")
		fmt.Fprintln(os.Stderr, "a word to the operator")
		fmt.Fprintln(os.Stderr, "a long line "+strings.Repeat("x", 100<<10)+"its end")
		_ = lab(nil).Run(context.Background(), &mcp.StdioTransport{})
	},
	// deaf reads nothing, and continues after its input has ended.
	"deaf":  func() { stay() },
	"mute":  func() { _, _ = os.Stdin.Read(make([]byte, 1)); stay() },
	"crash": func() { syscall.Exit(3) },
	"late": func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		fmt.Fprintln(os.Stderr, "its last word")
		syscall.Exit(4)
	},
	"deep":  func() { fmt.Fprintln(os.Stderr, "behind "+os.Getenv(upstream.DepthVariable)) },
	"dies":  dies,
	"shuts": func() { _ = os.Stdout.Close(); stay() },
	// wordy writes why it exits, in too many words.
	"wordy": func() {
		fmt.Fprint(os.Stderr, "starting\nconfig missing: hunter2 \x1b[31m"+strings.Repeat("é", 300)+"\n \n")
		syscall.Exit(3)
	},
	"reasons": func() {
		fmt.Fprintln(os.Stderr, "out of paper")
		_ = os.Stdout.Close()
		stay()
	},
	"stuck":     func() { fmt.Fprintln(os.Stderr, "waiting for the database"); stay() },
	"old":       old,
	"attentive": func() { _ = attentive().Run(context.Background(), &mcp.StdioTransport{}) },
	"growing":   func() { _ = growing().Run(context.Background(), &mcp.StdioTransport{}) },
	"rude":      rude,
	"unread":    unread,
	"mortal":    mortal,
	"dated":     func() { _ = dated(attentive()).Run(context.Background(), &mcp.StdioTransport{}) },
}

// stay blocks forever without being reported as a deadlock.
func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

// dies kills the program by a signal.
func dies() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	stay()
}

// old is a server of an earlier revision with a tool that requests input.
func old() {
	lines := bufio.NewScanner(os.Stdin)
	call, refused := "", 0
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct{ Action string }
			Error  json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			return
		}
		answer := func(id, format string, values ...any) {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":"+id+","+format+"}\n", values...)
		}
		switch {
		case m.Method == "initialize":
			answer(string(m.ID), `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
		case m.Method == "tools/list":
			answer(string(m.ID), `"result":{"tools":[{"name":"asks","inputSchema":{"type":"object"}}]}`)
		case m.Method == "prompts/list": // never answered
		case m.Method == "tools/call" && strings.Contains(lines.Text(), `"floods"`):
			for n := range 40 {
				answer(fmt.Sprintf("\"more %d\"", n), `"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`)
			}
			call = string(m.ID)
		case m.Method == "" && strings.HasPrefix(string(m.ID), `"more `):
			if refused++; m.Error != nil && refused == 24 {
				answer(call, `"result":{"content":[{"type":"text","text":"24 were refused"}]}`)
			}
		case m.Method == "tools/call":
			answer(`"mine `+strings.Trim(string(m.ID), `"`)+`"`, `"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`)
		case m.Method != "" && m.ID != nil:
			answer(string(m.ID), `"error":{"code":-32601,"message":"no"}`)
		case m.Method == "":
			answer(strings.Trim(strings.TrimPrefix(string(m.ID), `"mine `), `"`), `"result":{"content":[{"type":"text","text":%q}]}`, m.Result.Action)
		}
	}
}

// TestMain runs a program if the first argument names one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		programs[os.Args[1]]()
		syscall.Exit(0)
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // parallel tests mostly wait
	}
	goleak.VerifyTestMain(m)
}

// lab returns a server with tools for all behaviors of servers. Tools that block wait for
// ended, because some servers do not learn that a client has disconnected.
func lab(ended <-chan struct{}) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1"}, &mcp.ServerOptions{Instructions: "Ask the lab.", PageSize: 2})
	object := json.RawMessage(`{"type":"object"}`)
	add := func(name string, h mcp.ToolHandler) { s.AddTool(&mcp.Tool{Name: name, InputSchema: object}, h) }
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "said"}}, StructuredContent: r.Params.Arguments}, nil
	})
	add("meta", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Meta}, nil
	})
	add("tells", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		total := 2.0
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: total, Message: "half"})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	add("logs", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 servers of all revisions log so
		for _, level := range []mcp.LoggingLevel{"debug", "info", "error"} {
			//lint:ignore SA1019 as above
			_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: "a word"})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}}}, nil
	})
	add("waits", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-ended:
		}
		return nil, context.Canceled
	})
	add("asks", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		question := &mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)}
		if answer, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action + " " + r.Params.RequestState}}}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "where it stands"}, nil
	})
	add("drops", func(_ context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.RemoveTools("echo")
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "plan"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "plan " + r.Params.Arguments["day"]}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "lab://note", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "lab://note", Text: "read me"}}}, nil
	})
	return s
}

// web serves over HTTP until the test ends.
func web(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// forgets closes the sessions of a server when its host is closed. The server does not do that
// for clients that disconnect silently.
func forgets(t testing.TB, s *mcp.Server) *mcp.Server {
	t.Helper()
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	return s
}

// program returns the target of a program.
func program(t testing.TB, name string) upstream.Target {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Target{Name: name, Command: []string{path, name}}
}

// targetsByTransport returns a target for each transport and protocol era.
func targetsByTransport(t testing.TB) map[string]upstream.Target {
	t.Helper()
	ended := make(chan struct{})
	defer t.Cleanup(func() { close(ended) })
	one := func() func(*http.Request) *mcp.Server {
		server := forgets(t, lab(ended))
		return func(*http.Request) *mcp.Server { return server }
	}
	return map[string]upstream.Target{
		"stdio":     program(t, "lab"),
		"noisy":     program(t, "noisy"),
		"sessions":  {Name: "s", URL: web(t, mcp.NewStreamableHTTPHandler(one(), nil))},
		"stateless": {Name: "m", URL: web(t, mcp.NewStreamableHTTPHandler(one(), &mcp.StreamableHTTPOptions{Stateless: true}))},
		"json":      {Name: "j", URL: web(t, mcp.NewStreamableHTTPHandler(one(), &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))},
		"events":    {Name: "e", URL: web(t, mcp.NewSSEHandler(one(), nil)), Transport: upstream.TransportSSE},
		"found out": {Name: "f", URL: web(t, mcp.NewSSEHandler(one(), nil))},
	}
}

// journal is a readable log.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// options returns options that connect to any host.
func options(t testing.TB) (upstream.Options, *journal) {
	t.Helper()
	log := &journal{}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return upstream.Options{
		Version:      "test",
		Transport:    func(grant.HTTP) http.RoundTripper { return transport },
		ResolveValue: func(context.Context, grant.Value) (string, error) { return "", nil },
		Logger:       slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, log
}

// dial connects to a server until the test ends.
func dial(t testing.TB, p upstream.Target) (*upstream.Conn, *journal) {
	t.Helper()
	o, log := options(t)
	c, err := upstream.Dial(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, log
}

// call calls a tool and waits for the result.
func call(t testing.TB, l *upstream.Conn, tool, arguments string) upstream.Reply {
	t.Helper()
	c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: tool, Arguments: json.RawMessage(arguments)}, nil)
	reply, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
