// Package websocket carries MCP over WebSocket (RFC 6455), subprotocol "mcp":
// one message a text frame, both ways, both eras.
//
// A connection ends with the code that says why (RFC 6455 section 7.4.1): what
// is no text, or no UTF-8, or too long, or comes too slowly, or finds no room
// beside the messages of other clients. A client that answers no pings, or does
// not take what is written to it, would not take a farewell either: the log has
// the reason. Nothing is compressed.
//
// The package decides nothing about a message, and judges neither Host nor
// Origin: a gate must stand before the handler. It is the only one that knows
// the WebSocket library.
package websocket

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// subprotocol is the name that client and server agree on.
const subprotocol = "mcp"

// Options adjust the handler. The zero value serves everyone as anonymous.
type Options struct {
	authn.Middleware
	// Ping is how often the client is pinged; 0 stands for 25 s. A client
	// that is silent for twice as long is gone.
	Ping time.Duration
	// WriteTimeout is how long the client may take to receive one message, or 64 KiB
	// of a longer one; 0 stands for 10 s.
	WriteTimeout time.Duration
	// ReadTimeout is how long the client may take to send one message, from its
	// first frame to its last; 0 stands for 30 s.
	ReadTimeout time.Duration
	// Messages bounds the messages of clients under way, and Answers those that wait for
	// their clients to read them. Nil stands for no bound.
	Messages, Unread *httpguard.Budget
	// Logger is told of clients that are dropped; nil drops it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Ping <= 0 {
		o.Ping = 25 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

type handler struct {
	server   *mcp.Server
	options  Options
	upgrader websocket.Upgrader
}

// New returns the handler that upgrades requests to WebSocket. It returns once
// the connection is one; the connection ends when the server is drained.
func New(s *mcp.Server, o Options) http.Handler {
	return &handler{
		server: s, options: o.withDefaults(),
		upgrader: websocket.Upgrader{
			HandshakeTimeout: 10 * time.Second,
			WriteBufferPool:  &sync.Pool{},
			Subprotocols:     []string{subprotocol},
			// The gate before this handler has judged the Origin.
			CheckOrigin: func(*http.Request) bool { return true },
		},
	}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.Contains(offered, subprotocol) {
		http.Error(w, "the subprotocol must be "+subprotocol, http.StatusBadRequest)
		return
	}
	principal, source, pass, err := h.options.Authenticate(r)
	if err != nil {
		status, message := h.options.Reject(w.Header(), r, err)
		http.Error(w, message, status)
		return
	}
	if _, err := mcp.AgentFromHeaders(r.Header); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	counts, ok := httpguard.Admit(r, &principal)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, httpguard.TooManyInUse, http.StatusServiceUnavailable)
		return
	}
	select {
	case <-h.server.Draining():
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	default:
	}
	// The upgrader answers a request that is no proper handshake itself.
	socket, err := h.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	socket.SetReadLimit(int64(h.server.MaxMessage()))
	c := &client{socket: socket, options: h.options, access: pass, workClient: counts}
	c.unread = h.options.Unread.Hold(counts, (*unreadOwner)(c))
	// The handler returns, so that an idle connection does not hold on to what
	// net/http has for a request, its stack above all.
	go c.serve(context.WithoutCancel(r.Context()), h.server, mcp.Peer{Principal: principal, Source: source, Headers: r.Header, Transport: "websocket"})
}
