package upstream_test

import (
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// BenchmarkCall calls a tool over each transport. HTTP servers run in this process, so their
// allocations are included.
func BenchmarkCall(b *testing.B) {
	for way, target := range targetsByTransport(b) {
		b.Run(way, func(b *testing.B) {
			l, _ := dial(b, target)
			request := upstream.Request{Method: upstream.MethodTool, Name: "echo", Arguments: json.RawMessage(`{"a":1}`)}
			b.ReportAllocs()
			for b.Loop() {
				reply, err := l.Start(b.Context(), request, nil).Next(b.Context())
				if err != nil || reply.Result == nil {
					b.Fatalf("%+v, %v", reply, err)
				}
			}
		})
	}
}
