package upstream_test

import (
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// BenchmarkCall calls a tool of a server in every way in which one can be spoken to. Over
// HTTP the server is in this process, so its allocations are among those that are told.
func BenchmarkCall(b *testing.B) {
	for way, place := range ways(b) {
		b.Run(way, func(b *testing.B) {
			l, _ := dial(b, place)
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
