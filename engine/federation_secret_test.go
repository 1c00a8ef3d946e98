package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// syncBuffer is a log that is safe for concurrent use.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *syncBuffer) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

func (g *syncBuffer) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// newEchoUpstream returns a server that echoes its key everywhere. A deaf one rejects all requests, with long
// errors.
func newEchoUpstream(t *testing.T, deaf bool) (url string) {
	return web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if r.Method != http.MethodPost || json.Unmarshal(text, &m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		key := r.Header.Get("X-Key")
		w.Header().Set("Content-Type", "application/json")
		answer := func(member, format string, values ...any) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"%s":%s}`, m.ID, member, fmt.Sprintf(format, values...))
		}
		switch {
		case deaf && m.ID != nil:
			answer("error", `{"code":-32000,"message":"%s \u001b[31m %s"}`, key, strings.Repeat(key+"ü ", 1000))
		case m.Method == "initialize":
			answer("result", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":%q,"version":"1"},"instructions":%[1]q}`, key)
		case m.Method == "tools/list":
			answer("result", `{"tools":[{"name":"lacks","title":%[1]q,"description":%[1]q,"inputSchema":{"type":"object","description":%[1]q}},{"name":"fails","inputSchema":{"type":"object"}}]}`, key)
		case m.Method == "resources/list":
			answer("result", `{"resources":[{"uri":"lab://%[1]s","name":"one","description":%[1]q}]}`, key)
		case m.Method == "resources/templates/list":
			answer("result", `{"resourceTemplates":[]}`)
		case m.Method == "prompts/list":
			answer("result", `{"prompts":[{"name":"p","description":%[1]q,"arguments":[{"name":"a","description":%[1]q}]}]}`, key)
		case m.Method == "tools/call" && m.Params.Name == "lacks":
			answer("error", `{"code":-32021,"message":%[1]q,"data":{"requiredCapabilities":{%[1]q:{}}}}`, key)
		case m.Method == "tools/call":
			answer("result", `{"content":[{"type":"text","text":%[1]q}],"structuredContent":{"a":%[1]q},"isError":true}`, key)
		case m.ID != nil:
			answer("error", `{"code":-32601,"message":"no"}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
}

func TestUpstream_redactsEchoedKey(t *testing.T) {
	const key = "correct-horse-battery"
	var log syncBuffer
	lock := filepath.Join(t.TempDir(), "mcpd.lock")
	block := func(name, url string) string {
		return fmt.Sprintf("upstream %q {\n  url = %q\n  instructions = true\n  header \"X-Key\" {\n    value = secret.key\n  }\n}\n", name, url)
	}
	s := server(t, engine.Options{
		Files: engine.Files{
			Config:    files("mcpd.hcl", "secret \"key\" {\n  env = \"KEY\"\n}\ncodeact {}\n"+block("lab", newEchoUpstream(t, false))+block("deaf", newEchoUpstream(t, true))),
			LookupEnv: func(name string) (string, bool) { return key, name == "KEY" },
			LockPath:  lock,
		},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if up := s.Status().Upstreams[0]; !up.Up {
		t.Fatalf("the server is unreachable: %v", up.Err)
	}
	shown := map[string]any{"the prompt of code": outcomeLine(executeCall(t, s, call.Request{Kind: call.Prompts, Name: "code_mode"}))}
	for _, name := range []string{"lab_lacks", "lab_fails"} {
		got := executeCall(t, s, tool(name, `{}`))
		if got.Err == nil {
			t.Fatalf("%s ends with %s", name, outcomeLine(got))
		}
		shown[name] = fmt.Sprintf("%+v %s", got.Err, got.Err.Details)
	}
	pinned, err := os.ReadFile(lock)
	if err != nil || !bytes.Contains(pinned, []byte("lacks")) {
		t.Fatalf("the lock file is %s, %v", pinned, err)
	}
	shown["the lock file"] = string(pinned)
	shown["the instructions"] = s.Snapshot().Info().Instructions
	for _, tool := range s.Snapshot().Tools() {
		m := tool.Metadata()
		shown[m.Name+", as it is listed"] = encoded(t, m)
	}
	for _, kind := range []call.Kind{call.Resources, call.Prompts} {
		for _, offer := range s.Snapshot().Offers(kind) {
			shown[offer.Metadata().Address+", as it is listed"] = encoded(t, offer.Metadata())
		}
	}
	if logged := log.String(); strings.Contains(logged, key[:4]) || !utf8.ValidString(logged) || len(logged) > 16<<10 {
		t.Errorf("%d bytes are logged: %.2000s", len(logged), logged)
	}
	for _, u := range s.Status().Upstreams {
		shown["the status of "+u.Name] = fmt.Sprintf("%+v", u)
		if u.Name == "deaf" && (u.Err == nil || len(u.Err.Error()) > 2000) {
			t.Errorf("the connection error has %d bytes", len(fmt.Sprint(u.Err)))
		}
	}
	for what, text := range shown {
		if text := fmt.Sprint(text); strings.Contains(text, key[:4]) || !utf8.ValidString(text) {
			t.Errorf("%s: %.300s", what, text)
		}
	}
	if len(shown) < 8 {
		t.Errorf("only %d things are shown", len(shown))
	}
}

// encoded returns a value as JSON.
func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An input request is bounded, without leaving a part of a secret.
func TestUpstream_rejectsAskWithKey(t *testing.T) {
	const key = "correct-horse-battery"
	up := mcp.NewServer(&mcp.Implementation{Name: "asks", Version: "1"}, nil)
	up.AddTool(&mcp.Tool{Name: "asks", InputSchema: anyInput}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		message := strings.Repeat("x", 16<<10-len(key)/2) + r.Extra.Header.Get("X-Key")
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}}, nil
	})
	url := web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, &mcp.StreamableHTTPOptions{Stateless: true}))
	s := server(t, engine.Options{
		Files: engine.Files{
			Config:    files("mcpd.hcl", "secret \"key\" {\n  env = \"KEY\"\n}\n"+upstreamAt(url, `ask = ["elicit"]`, "header \"X-Key\" {\n    value = secret.key\n  }")),
			LookupEnv: func(name string) (string, bool) { return key, name == "KEY" },
		},
	})
	if got := outcomeLine(executeCall(t, s, askableCall("lab_asks"))); !strings.Contains(got, "the input request contains the value of a secret") {
		t.Errorf("the call ends with %.200s", got)
	}
}
