package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// fake is a backend that answers every call with respond, and remembers the
// last one.
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
func (f *fake) Serves(context.Context, identity.Caller, string) bool            { return true }
func (f *fake) Call(_ context.Context, r call.Request) (call.Result, *mcp.Task) {
	f.got = r
	if r.Declined != nil {
		return call.Result{Err: r.Declined}, nil
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

// customers is the RFC's own example.
func customers(t testing.TB) *fake {
	t.Helper()
	tool := func(info mcp.ToolInfo) *mcp.Tool {
		made, err := mcp.NewTool(info)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	yes := true
	tools := []*mcp.Tool{
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
		list: func(identity.Caller) mcp.List { return mcp.List{Revision: "r1", Hash: "h1", Tools: tools} },
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
