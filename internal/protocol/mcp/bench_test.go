package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// fixed is a backend that returns fixed values.
type fixed struct {
	list     mcp.List
	response call.Result
}

func (*fixed) Info() mcp.Info                                                { return mcp.Info{Name: "fixed", Version: "1"} }
func (f *fixed) List(context.Context, call.Kind, identity.Caller) mcp.List   { return f.list }
func (f *fixed) Call(context.Context, call.Request) (call.Result, *mcp.Task) { return f.response, nil }
func (*fixed) Watch(func([]string)) func()                                   { return func() {} }
func (*fixed) WatchResource(string) (leave func())                           { return func() {} }
func (*fixed) CanRead(context.Context, identity.Caller, string) bool         { return true }
func (f *fixed) Find(context.Context, identity.Caller, string) *mcp.Entry    { return nil }

func newFixed(tb testing.TB, tools int) *mcp.Server {
	tb.Helper()
	f := &fixed{list: mcp.List{Hash: "h", Revision: "r"}}
	for i := range tools {
		t, err := mcp.NewTool(mcp.ToolInfo{
			Name: fmt.Sprintf("tool_%d", i), Description: "Does something that takes a sentence to say.", HasDescription: true,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number","description":"The first"},"b":{"type":"number","description":"The second"}},"required":["a","b"],"additionalProperties":false}`),
		})
		if err != nil {
			tb.Fatal(err)
		}
		f.list.Entries = append(f.list.Entries, t)
	}
	f.response = call.Result{
		Value: json.RawMessage(`{"sum":3}`), Structured: json.RawMessage(`{"sum":3}`),
		Content: json.RawMessage(`[{"type":"text","text":"{\"sum\":3}"}]`), Revision: "r",
	}
	s := mcp.New(f, mcp.Options{})
	tb.Cleanup(func() { _ = s.Drain(context.Background()) })
	return s
}

// TestCall_allocations covers everything between the transport and the backend,
// in both directions.
func TestCall_allocations(t *testing.T) {
	s := newFixed(t, 1)
	call, x := request(1, "tools/call", `"name":"tool_0","arguments":{"a":1,"b":2}`), exchange("tools/call", "tool_0")
	const budget = 24
	if got := testing.AllocsPerRun(1000, func() { s.Exchange(t.Context(), call, x) }); got > budget {
		t.Errorf("a call makes %.0f allocations, want at most %d", got, budget)
	}
	conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, func(mcp.Frame) error { return nil })
	defer conn.Close()
	ping := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	const pingBudget = 12
	if got := testing.AllocsPerRun(1000, func() { conn.Receive(t.Context(), ping, nil) }); got > pingBudget {
		t.Errorf("a ping makes %.0f allocations, want at most %d", got, pingBudget)
	}
}

// TestList_allocations proves that pages are encoded once.
func TestList_allocations(t *testing.T) {
	list, x := request(1, "tools/list", ""), exchange("tools/list", "")
	cost := func(tools int) float64 {
		s := newFixed(t, tools)
		return testing.AllocsPerRun(100, func() { s.Exchange(t.Context(), list, x) })
	}
	if one, many := cost(1), cost(1000); many > one {
		t.Errorf("a list of 1,000 tools makes %.0f allocations, a list of one %.0f", many, one)
	}
}

func BenchmarkCall(b *testing.B) {
	s := newFixed(b, 1)
	call, x := request(1, "tools/call", `"name":"tool_0","arguments":{"a":1,"b":2}`), exchange("tools/call", "tool_0")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Exchange(b.Context(), call, x).Frame.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList_1000Tools(b *testing.B) {
	s := newFixed(b, 1000)
	list, x := request(1, "tools/list", ""), exchange("tools/list", "")
	b.ReportAllocs()
	for b.Loop() {
		reply := s.Exchange(b.Context(), list, x)
		if _, err := reply.Frame.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(reply.Frame.Len()))
	}
}
