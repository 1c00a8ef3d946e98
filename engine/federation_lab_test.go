package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
)

// newTestUpstream returns a server of the official SDK, with a tool for each feature.
func newTestUpstream() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Ask the lab.",
		CompletionHandler: func(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			// Clients do not see this text in completions.
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.Meta["progressToken"], Progress: 1})
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Value + "!"}, Total: 1}}, nil
		},
	})
	add := func(t *mcp.Tool, h mcp.ToolHandler) { s.AddTool(t, h) }
	object := json.RawMessage(`{"type":"object"}`)
	yes := true
	add(&mcp.Tool{
		Name: "sum", Title: "Sum up", Description: "Adds two numbers", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &yes},
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number","default":2}},"required":["a"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`),
	}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ A, B float64 }
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]float64{"sum": in.A + in.B}}, nil
	})
	add(&mcp.Tool{Name: "lies", InputSchema: object, OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]string{"n": "seven"}}, nil
		})
	add(&mcp.Tool{Name: "text", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a text"}}}, nil
	})
	add(&mcp.Tool{Name: "picture", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "see"}, &mcp.ImageContent{Data: []byte("gif"), MIMEType: "image/gif"}}, StructuredContent: map[string]int{"w": 1}}, nil
	})
	add(&mcp.Tool{Name: "fails", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such order"}}}, nil
	})
	add(&mcp.Tool{Name: "tells", InputSchema: object}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"})
		//lint:ignore SA1019 servers of all revisions log so
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "a word"})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "plan", Description: "Plans a day", Arguments: []*mcp.PromptArgument{{Name: "day", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "plan " + r.Params.Arguments["day"]}}}}, nil
		})
	note := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if strings.HasSuffix(r.Params.URI, "/none") {
			return nil, mcp.ResourceNotFoundError(r.Params.URI)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "holds " + r.Params.URI}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "lab://note", Name: "note", MIMEType: "text/plain"}, note)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "lab://notes/{id}", Name: "notes"}, note)
	return s
}

// web serves over HTTP until the test ends.
func web(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// newTestUpstreams returns equal servers, by transport.
func newTestUpstreams(t *testing.T) map[string]string {
	of := func(*http.Request) *mcp.Server { return newTestUpstream() }
	one := newTestUpstream()
	return map[string]string{
		"sessions":  web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, nil)),
		"stateless": web(t, mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true})),
		"events":    web(t, mcp.NewSSEHandler(of, nil)),
		"legacy":    web(t, &legacyUpstream{}),
	}
}

// legacyUpstream is a server of revision 2025-11-25 over Streamable HTTP, with a tool that elicits during a
// call.
type legacyUpstream struct {
	asks string // the parameters of what it asks users; "" for a form

	mu      sync.Mutex
	answers map[string]chan json.RawMessage
}

func (l *legacyUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	text, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
		Result json.RawMessage
		Error  json.RawMessage
	}
	if json.Unmarshal(text, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"legacy","version":"1"}}`)
	case m.Method == "tools/list":
		answer(`{"tools":[{"name":"asks","inputSchema":{"type":"object"}},{"name":"samples","inputSchema":{"type":"object"}},` +
			`{"name":"works","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"may","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}`)
	case m.Method == "tools/call":
		l.call(w, m.ID, m.Params.Name)
	case m.Method == "" && m.ID != nil:
		l.answered(string(m.ID), m.Result, m.Error)
		w.WriteHeader(http.StatusAccepted)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		answer(`{}`)
	}
}

func (l *legacyUpstream) answered(id string, result, fault json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.answers[id]; c != nil {
		if fault != nil {
			result = fault
		}
		c <- result
	}
}

// call sends an elicitation, and returns the response as text.
func (l *legacyUpstream) call(w http.ResponseWriter, id json.RawMessage, tool string) {
	asked, c := `"ask `+strings.Trim(string(id), `"`)+`"`, make(chan json.RawMessage, 1)
	l.mu.Lock()
	if l.answers == nil {
		l.answers = map[string]chan json.RawMessage{}
	}
	l.answers[asked] = c
	l.mu.Unlock()
	question := `"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}`
	switch {
	case l.asks != "":
		question = `"method":"elicitation/create","params":` + l.asks
	case tool == "samples":
		question = `"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Think"}}],"maxTokens":1000000,"includeContext":"allServers"}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n\n", asked, question)
	w.(http.Flusher).Flush()
	said, _ := json.Marshal("answered " + string(<-c))
	_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%s}]}}\n\n", id, said)
}

// upstreamAt returns an upstream block with a URL and more arguments.
func upstreamAt(url string, more ...string) string { return upstreamNamed("lab", url, more...) }

// upstreamNamed returns an upstream block with a name.
func upstreamNamed(name, url string, more ...string) string {
	return fmt.Sprintf("upstream %q {\n  url = %q\n  %s\n}\n", name, url, strings.Join(more, "\n  "))
}

// federated returns a loaded server with a configuration.
func federated(t *testing.T, config string, tools ...string) *engine.Server {
	t.Helper()
	return server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", config), Tools: files(tools...)}})
}
