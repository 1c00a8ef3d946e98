package serve

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/rest"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// mcpPath is the path of the MCP endpoint, and messagesPath that for messages of clients of HTTP+SSE.
const (
	mcpPath      = "/mcp"
	messagesPath = "/messages"
)

// route is a path pattern with its handler.
type route struct {
	pattern string
	handler http.Handler
}

// routes returns all HTTP routes. Messages outside request bodies share the
// budget of bodies, and all responses share one. Each handler authenticates its
// callers, except for the public ones: health checks, metadata, and OAuth
// callback pages.
func (f *Front) routes(bodies, unread *httpguard.Budget) []route {
	who, log, callback := f.auth.middleware(), f.engine.Logger(), f.engine.OAuthCallbacks()
	bounds := httpstream.Bounds{Unread: unread, Logger: log}
	streams, messages := sse.New(f.mcp, sse.Options{Middleware: who, Messages: messagesPath, NewSessionID: f.newSessionID, Bounds: bounds})
	wire := rest.New(f.backend, rest.Options{Middleware: who, OnAgentMismatch: f.auth.onClaimMismatch, Unread: unread})
	metadata := http.HandlerFunc(f.auth.metadata)
	all := []route{
		{mcpPath, streamable.New(f.mcp, streamable.Options{Middleware: who, Bounds: bounds})},
		{"/ws", websocket.New(f.mcp, websocket.Options{Middleware: who, Messages: bodies, Unread: unread, Logger: log})},
		{"/sse", streams},
		{"/mcp/sse", streams},
		{messagesPath, messages},
		{rest.CapabilitiesPath, wire},
		{rest.ExecutePath, wire},
		{"/healthz", http.HandlerFunc(f.healthz)},
		{"/readyz", http.HandlerFunc(f.readyz)},
		{authn.MetadataPath, metadata},
		{authn.MetadataPath + "/", metadata},
		{"/oauth/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if page := callback(r); page != nil {
				page.ServeHTTP(w, r)
			} else {
				notFound(w, r)
			}
		})},
		{"/", http.HandlerFunc(root)},
	}
	if f.console != nil {
		all = append(all, route{ConsolePath, f.console}, route{strings.TrimSuffix(ConsolePath, "/"), f.console})
	}
	if metrics := f.engine.Metrics(); metrics != nil {
		all = append(all, route{"/metrics", f.auth.requireMetricsScope(metrics)})
	}
	return all
}

// frontPage is the page for people who open the server's address in a browser.
// It is the same for all clients, and contains nothing about the served tools or
// callers.
const frontPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mcpd</title>
</head>
<body>
<h1>mcpd</h1>
<p>This is an mcpd server. It serves tools, resources and prompts to AI agents over the Model Context Protocol (MCP). It has no user interface for browsers.</p>
<h2>Connect a client</h2>
<p>Give your MCP client the address of this page followed by <code>/mcp</code>. If the server rejects the client, it needs an API key or a token from the operator of this server.</p>
<h2>Where to go</h2>
<dl>
<dt><code>/mcp</code></dt><dd>MCP over Streamable HTTP</dd>
<dt><code>/sse</code></dt><dd>MCP over HTTP+SSE, for older clients</dd>
<dt><code>/ws</code></dt><dd>MCP over WebSocket</dd>
<dt><code>/mcp/capabilities</code>, <code>/mcp/execute</code></dt><dd>tools over plain HTTP and JSON</dd>
<dt><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a></dt><dd>the state of the server</dd>
</dl>
<h2>If you run it</h2>
<p><code>mcpd list</code> shows its tools, resources and prompts, <code>mcpd status</code> shows its state, <code>mcpd --help</code> lists all commands.</p>
</body>
</html>
`

// root serves the address of the server: the front page for browsers, and a 404
// for others.
func root(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead || !wantsHTML(r.Header) {
		notFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(frontPage)))
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	_, _ = w.Write([]byte(frontPage)) // a client that is gone is not an error
}

// wantsHTML reports whether a request accepts HTML explicitly, as browsers do,
// or has no Accept header. Programs accept JSON, or anything.
func wantsHTML(h http.Header) bool {
	accept := h["Accept"]
	if len(accept) == 0 {
		return true
	}
	for _, list := range accept {
		for part := range strings.SplitSeq(list, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil || kind != "text/html" {
				continue
			}
			quality, err := strconv.ParseFloat(params["q"], 64)
			if params["q"] == "" || err == nil && quality > 0 {
				return true
			}
		}
	}
	return false
}
