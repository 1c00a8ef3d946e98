package serve

import (
	"maps"
	"slices"

	"github.com/mcpd/mcpd/engine"
)

// clients counts those who are connected, by transport: sessions are those of the
// streamable one.
func (f *Front) clients() []engine.Clients {
	now := f.mcp.Census()
	counted := []engine.Clients{{Transport: "streamable", Sessions: now.Sessions}}
	for _, transport := range slices.Sorted(maps.Keys(now.Connections)) {
		counted = append(counted, engine.Clients{Transport: transport, Connections: now.Connections[transport]})
	}
	return counted
}
