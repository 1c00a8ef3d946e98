package upstream_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/internal/upstream"
)

type traceKey struct{}

// trace is what is told of where a call comes from.
type trace struct {
	Parent string `json:"traceparent"`
	State  string `json:"tracestate"`
}

// A trace has no state without a parent, and a context without either has none.
func TestACallCarriesTheTraceOfItsContextOn(t *testing.T) {
	eras := map[bool]bool{}
	for way, place := range ways(t) {
		t.Run(way, func(t *testing.T) {
			o, _ := options(t)
			o.Propagate = func(ctx context.Context) (parent, state string) {
				of, _ := ctx.Value(traceKey{}).(trace)
				return of.Parent, of.State
			}
			l, err := upstream.Dial(t.Context(), place, o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			eras[l.Modern()] = true
			const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			for of, want := range map[trace]trace{{parent, "a=b"}: {parent, "a=b"}, {parent, ""}: {parent, ""}, {"", "a=b"}: {}, {}: {}} {
				if got := traceOf(t, l, context.WithValue(t.Context(), traceKey{}, of)); got != want {
					t.Errorf("of %q the server sees %q", of, got)
				}
			}
		})
	}
	if !eras[true] || !eras[false] {
		t.Errorf("servers of one era alone were called: %v", eras)
	}
}

// traceOf returns what the server sees of the trace of a call.
func traceOf(t *testing.T, l *upstream.Link, ctx context.Context) trace {
	t.Helper()
	reply, err := l.Begin(ctx, upstream.Request{Method: upstream.MethodTool, Name: "meta"}, nil).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ StructuredContent trace }
	if err := json.Unmarshal(reply.Result, &said); err != nil {
		t.Fatalf("%s: %v", reply.Result, err)
	}
	return said.StructuredContent
}
