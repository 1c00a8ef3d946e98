package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// contracts holds the exchanges that version 1 must not change.
const contracts = "../../../../testdata/contract"

// exchange is one file: a request, and its complete response.
type exchange struct {
	About   string `json:"about"`
	Request struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Headers map[string]string `json:"headers,omitempty"`
		Body    json.RawMessage   `json:"body,omitempty"`
		Text    *string           `json:"text,omitempty"` // a body that is not JSON
	} `json:"request"`
	Response answer `json:"response"`
}

type answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// prepare sets the backend's response for each file. Files without an entry do
// not reach the backend.
func prepare(f *fake, name string) {
	switch name {
	case "execute_result.json":
		f.answers(`{"customer_id":"C-1042","status":"active"}`)
	case "execute_rich_content.json":
		f.respond = call.Result{Rich: true, Content: json.RawMessage(`[{"type":"text","text":"hello"}]`)}
	case "execute_rich_and_structured.json":
		f.respond = call.Result{Rich: true, Value: json.RawMessage(`{"n":1}`), Content: json.RawMessage(`[{"type":"text","text":"one"}]`)}
	case "execute_no_result.json":
		f.answers(`null`)
	case "error_invalid_input.json":
		e := f.fails(call.InvalidInput, "the arguments of get_customer are invalid: customer_id is required")
		e.Violations = []call.Violation{{Path: "/customer_id", Message: "is required"}}
		e.Schema = json.RawMessage(`{"type":"object"}`)
	case "error_tool_not_found.json":
		f.fails(call.ToolNotFound, `there is no tool "get_costumer"; did you mean "get_customer"?`)
	case "error_policy_denied.json":
		f.fails(call.PolicyDenied, "Blocked in prod")
	case "error_rate_limited.json":
		e := f.fails(call.PolicyDenied, "over the limit of 60 calls a minute; try again in 12 s")
		e.Limited, e.RetryAfter = true, 11*time.Second+time.Millisecond
	case "error_execution.json":
		e := f.fails(call.ExecutionError, "no customer <C-1042>")
		e.Details = json.RawMessage(`{"kept":"for MCP"}`)
	case "error_overloaded.json":
		e := f.fails(call.ExecutionError, "the server is busy")
		e.Overloaded = true
	case "error_timeout.json":
		f.fails(call.Timeout, "get_customer took longer than 1 s")
	}
}

var update = flag.Bool("update", false, "write the responses into testdata/contract")

func TestContract(t *testing.T) {
	files, err := filepath.Glob(contracts + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no contracts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var x exchange
			if err := json.Unmarshal(text, &x); err != nil {
				t.Fatal(err)
			}
			got := play(t, x, filepath.Base(file))
			if *update {
				x.Response = got
				save(t, file, x)
				return
			}
			x.Response.Body = compact(t, x.Response.Body)
			if diff := cmp.Diff(x.Response, got); diff != "" {
				t.Errorf("response (-want +got):\n%s\n%s", diff, got.Body)
			}
		})
	}
}

// play sends the request of an exchange and returns the response.
func play(t *testing.T, x exchange, name string) answer {
	t.Helper()
	f := customers(t)
	prepare(f, name)
	header := http.Header{}
	for name, value := range x.Request.Headers {
		if value == "ETAG" {
			value = f.send(http.MethodGet, CapabilitiesPath, nil, "").Header().Get("ETag")
		}
		header.Set(name, value)
	}
	body := string(x.Request.Body)
	if x.Request.Text != nil {
		body = *x.Request.Text
	}
	w := f.send(x.Request.Method, x.Request.Path, header, body)
	got := answer{Status: w.Code, Headers: map[string]string{}, Body: json.RawMessage(w.Body.Bytes())}
	for name := range w.Header() {
		got.Headers[name] = w.Header().Get(name)
	}
	if w.Body.Len() == 0 {
		got.Body = nil
	}
	return got
}

func compact(t *testing.T, text []byte) json.RawMessage {
	t.Helper()
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func save(t *testing.T, file string, x exchange) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(x); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fake is a backend that answers every call with respond, and records the last
// one.
type fake struct {
	info    mcp.Info
	list    func(identity.Caller) mcp.List
	respond call.Result
	got     call.Request
	calls   int
}

func (f *fake) Info() mcp.Info                                                  { return f.info }
func (f *fake) List(_ context.Context, _ call.Kind, c identity.Caller) mcp.List { return f.list(c) }
func (f *fake) Watch(func([]string)) (stop func())                              { return func() {} }
func (f *fake) Find(context.Context, identity.Caller, string) *mcp.Entry        { return nil }
func (f *fake) WatchResource(string) (leave func())                             { return func() {} }
func (f *fake) CanRead(context.Context, identity.Caller, string) bool           { return true }
func (f *fake) Call(_ context.Context, r call.Request) (call.Result, *mcp.Task) {
	f.got = r
	if r.RejectErr != nil {
		return call.Result{Err: r.RejectErr}, nil
	}
	f.calls++
	return f.respond, nil
}
func (f *fake) answers(value string) *fake {
	f.respond = call.Result{Value: json.RawMessage(value)}
	return f
}
func (f *fake) fails(code call.Code, message string) (e *call.Error) {
	e = &call.Error{Code: code, Message: message}
	f.respond = call.Result{Err: e}
	return e
}

// customers is the example of the RFC.
func customers(t testing.TB) *fake {
	t.Helper()
	tool := func(info mcp.ToolInfo) *mcp.Entry {
		made, err := mcp.NewTool(info)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	yes := true
	tools := []*mcp.Entry{
		tool(mcp.ToolInfo{
			Name: "get_customer", TimeoutMS: 1000, Idempotent: true,
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"customer_id":{"type":"string"}},"required":["customer_id"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"customer_id":{"type":"string"},"status":{"type":"string"}},"required":["customer_id","status"]}`),
		}),
		tool(mcp.ToolInfo{
			Name: "summarize_text", Title: "Summarize", Description: "Shortens a <text>.", HasDescription: true, TimeoutMS: 2500, ReadOnly: &yes,
			InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
		}),
	}
	return &fake{
		info: mcp.Info{Name: "customer-mcp", Version: "1.0.0"},
		list: func(identity.Caller) mcp.List { return mcp.List{Revision: "r1", Hash: "h1", Entries: tools} },
	}
}

// send sends one request with the id "req-1" to a handler over f.
func (f *fake) send(method, path string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-Request-Id", "req-1")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		if r.Header[name] = values; values == nil {
			delete(r.Header, name)
		}
	}
	w := httptest.NewRecorder()
	New(f, Options{}).ServeHTTP(w, r)
	return w
}

func (f *fake) execute(body string) *httptest.ResponseRecorder {
	return f.send(http.MethodPost, ExecutePath, nil, body)
}
