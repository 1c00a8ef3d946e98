package upstream_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

type traceKey struct{}

func TestACallCarriesTheTraceOfItsContextOn(t *testing.T) {
	eras := map[bool]bool{}
	for way, place := range ways(t) {
		t.Run(way, func(t *testing.T) {
			o, _ := options(t)
			o.Propagate = func(ctx context.Context) string {
				parent, _ := ctx.Value(traceKey{}).(string)
				return parent
			}
			l, err := upstream.Dial(t.Context(), place, o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			eras[l.Modern()] = true
			const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			for _, want := range []string{parent, ""} {
				if got := traceOf(t, l, context.WithValue(t.Context(), traceKey{}, want)); got != want {
					t.Errorf("of %q the server sees %q", want, got)
				}
			}
		})
	}
	if !eras[true] || !eras[false] {
		t.Errorf("servers of one era alone were called: %v", eras)
	}
}

// traceOf returns what the server sees of the trace of a call.
func traceOf(t *testing.T, l *upstream.Link, ctx context.Context) string {
	t.Helper()
	reply, err := l.Begin(ctx, upstream.Request{Method: upstream.MethodTool, Name: "meta"}, nil).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ StructuredContent struct{ TraceParent string } }
	if err := json.Unmarshal(reply.Result, &said); err != nil {
		t.Fatalf("%s: %v", reply.Result, err)
	}
	return said.StructuredContent.TraceParent
}
