package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/serve"
)

var shared postgrestest.Shared

func TestMain(m *testing.M) {
	remove := goleak.Cleanup(func(code int) {
		if err := shared.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	})
	goleak.VerifyTestMain(m, remove, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// transports are the ways to make a call. Each connect returns a function that
// makes one call and returns its outcome.
var transports = []struct {
	name    string
	connect func(*testing.T, *serve.Front) func(oneCall) outcome
}{
	{"REST", overREST},
	{"modern HTTP", overModern},
	{"legacy HTTP", overLegacy},
	{"WebSocket", overWebSocket},
	{"modern WebSocket", overModernWebSocket},
	{"HTTP+SSE", overSSE},
	{"stdio", overStdio},
	{"modern stdio", overModernStdio},
}

const (
	agentClaim = `{"agent_id":"tester","model":"m-1","metadata":{"team":"qa"}}`
	metaAgent  = `"_meta":{"mcpd/agent":` + agentClaim + `}`
	metaModern = `"_meta":{"mcpd/agent":` + agentClaim + `,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ready      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func overREST(t *testing.T, front *serve.Front) func(oneCall) outcome {
	url := listen(t, front)
	return func(c oneCall) outcome {
		body := fmt.Sprintf(`{"tool":%q,"arguments":%s,"agent":%s}`, c.tool, c.args, agentClaim)
		_, answer := post(t, url+"/mcp/execute", body, nil)
		return readREST(t, answer)
	}
}

// readREST reads the response to POST /mcp/execute.
func readREST(t *testing.T, answer []byte) outcome {
	t.Helper()
	var wire struct {
		Result         json.RawMessage
		Error, Message string
		Trace          string
	}
	decode(t, answer, &wire)
	if wire.Error != "" {
		return outcome{Code: wire.Error, Message: wire.Message, Trace: wire.Trace, NamesFile: namesFile(answer)}
	}
	return outcome{Value: textual(wire.Result), NamesFile: namesFile(answer)}
}

// textual returns a value in the text form of MCP: a string is its own text.
func textual(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return canonical(json.RawMessage(text))
	}
	return canonical(value)
}

func request(meta string, c oneCall) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":%q,"arguments":%s}}`, meta, c.tool, c.args)
}

func overModern(t *testing.T, front *serve.Front) func(oneCall) outcome {
	url := listen(t, front)
	return func(c oneCall) outcome {
		_, answer := post(t, url+"/mcp", request(metaModern, c), map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": c.tool,
		})
		return read(t, answer)
	}
}

func overLegacy(t *testing.T, front *serve.Front) func(oneCall) outcome {
	url := listen(t, front)
	header, _ := post(t, url+"/mcp", initialize, nil)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	post(t, url+"/mcp", ready, session)
	return func(c oneCall) outcome {
		_, answer := post(t, url+"/mcp", request(metaAgent, c), session)
		return read(t, answer)
	}
}

func overWebSocket(t *testing.T, front *serve.Front) func(oneCall) outcome {
	return socket(t, front, metaAgent, true)
}

func overModernWebSocket(t *testing.T, front *serve.Front) func(oneCall) outcome {
	return socket(t, front, metaModern, false)
}

func socket(t *testing.T, front *serve.Front, meta string, legacy bool) func(oneCall) outcome {
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(listen(t, front), "http")+"/ws", nil)
	if err != nil {
		t.Fatalf("dial: %v %v", err, response)
	}
	t.Cleanup(func() { conn.Close() })
	send := func(text string) {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() []byte {
		_, text, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if legacy {
		send(initialize)
		receive()
		send(ready)
	}
	return func(c oneCall) outcome {
		send(request(meta, c))
		return read(t, receive())
	}
}

func overSSE(t *testing.T, front *serve.Front) func(oneCall) outcome {
	url := listen(t, front)
	stream, endpoint := openSSE(t, url)
	send := func(text string) { post(t, url+endpoint, text, nil) }
	send(initialize)
	stream()
	send(ready)
	return func(c oneCall) outcome {
		send(request(metaAgent, c))
		return read(t, stream())
	}
}

// openSSE opens a stream. next returns the data of its events; nil at its end.
func openSSE(t *testing.T, url string) (next func() []byte, endpoint string) {
	t.Helper()
	return openSSEWith(context.Background(), t, url)
}

// openSSEWith is openSSE for a stream that ends with ctx.
func openSSEWith(ctx context.Context, t *testing.T, url string) (next func() []byte, endpoint string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	next = func() []byte {
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil
			}
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				return bytes.TrimSpace(data)
			}
		}
	}
	return next, string(next())
}

func overStdio(t *testing.T, front *serve.Front) func(oneCall) outcome {
	return pipes(t, front, metaAgent, true)
}

func overModernStdio(t *testing.T, front *serve.Front) func(oneCall) outcome {
	return pipes(t, front, metaModern, false)
}

func pipes(t *testing.T, front *serve.Front, meta string, legacy bool) func(oneCall) outcome {
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- front.Stdio(context.Background(), in, out) }()
	t.Cleanup(func() {
		input.Close()
		if err := <-ended; err != nil {
			t.Errorf("stdio: %v", err)
		}
	})
	lines := bufio.NewReader(output)
	send := func(text string) {
		if _, err := io.WriteString(input, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() []byte {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	if legacy {
		send(initialize)
		receive()
		send(ready)
	}
	return func(c oneCall) outcome {
		send(request(meta, c))
		return read(t, receive())
	}
}

// read reads the response to tools/call, of either era.
func read(t *testing.T, answer []byte) outcome {
	t.Helper()
	type mcpError struct{ Code, Message, Trace string }
	var wire struct {
		Result struct {
			IsError           bool
			Content           []contentBlock
			StructuredContent json.RawMessage
			Meta              map[string]json.RawMessage `json:"_meta"`
		}
		Error *struct{ Data mcpError }
	}
	decode(t, answer, &wire)
	if wire.Error != nil {
		return outcome{Code: wire.Error.Data.Code, Message: wire.Error.Data.Message, Trace: wire.Error.Data.Trace, NamesFile: namesFile(answer)}
	}
	if wire.Result.IsError {
		var failed mcpError
		decode(t, wire.Result.Meta["mcpd/error"], &failed)
		return outcome{Code: failed.Code, Message: failed.Message, Trace: failed.Trace, NamesFile: namesFile(answer)}
	}
	return outcome{Value: valueOf(wire.Result.StructuredContent, wire.Result.Content), NamesFile: namesFile(answer)}
}

// namesFile reports whether a response contains the name of the tool file.
func namesFile(answer []byte) bool { return bytes.Contains(answer, []byte("t.hcl")) }

func listen(t *testing.T, front *serve.Front) string {
	t.Helper()
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func post(t *testing.T, url, body string, header map[string]string) (http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header, answer
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
}
