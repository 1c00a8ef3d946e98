package serve

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/rest"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// endpointPath is that of the endpoint of MCP.
const endpointPath = "/mcp"

// route is a pattern of paths, and who answers there.
type route struct {
	pattern string
	handler http.Handler
}

// routes returns all that there is over HTTP. Messages that are no bodies of requests
// share the budget of bodies, and all answers share one. Who answers lets callers in by
// the door itself, but for what is open to all: the probes, the metadata, and the pages
// to which users come back.
func (f *Front) routes(bodies, answers *httpguard.Budget) []route {
	who, log, returns := f.access.door(), f.engine.Logger(), f.engine.Returns()
	bounds := httpstream.Bounds{Answers: answers, Logger: log}
	streams, messages := sse.New(f.mcp, sse.Options{Door: who, Bounds: bounds})
	wire := rest.New(f.backend, rest.Options{Door: who, Contradicted: f.access.contradicted, Answers: answers})
	metadata := http.HandlerFunc(f.access.metadata)
	all := []route{
		{endpointPath, streamable.New(f.mcp, streamable.Options{Door: who, Bounds: bounds})},
		{"/ws", websocket.New(f.mcp, websocket.Options{Door: who, Messages: bodies, Answers: answers, Logger: log})},
		{"/sse", streams},
		{"/mcp/sse", streams},
		{"/messages", messages},
		{rest.CapabilitiesPath, wire},
		{rest.ExecutePath, wire},
		{"/healthz", http.HandlerFunc(f.healthz)},
		{"/readyz", http.HandlerFunc(f.readyz)},
		{authn.MetadataPath, metadata},
		{authn.MetadataPath + "/", metadata},
		{"/oauth/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { takeBack(w, r, returns(r)) })},
		{"/", http.HandlerFunc(root)},
	}
	if metrics := f.engine.Metrics(); metrics != nil {
		all = append(all, route{"/metrics", f.access.watchers(metrics)})
	}
	return all
}
