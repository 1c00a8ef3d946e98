// Package websocket carries MCP over WebSocket (RFC 6455), subprotocol "mcp":
// one message per text frame, in both directions, for both eras.
//
// A connection ends with a close code for its reason (RFC 6455 section 7.4.1):
// a message that is not text, not UTF-8, too long, too slow, or without room
// beside the messages of other clients. A client that answers no pings, or does
// not read, would not read a close frame either: the log has the reason.
// Nothing is compressed.
//
// The package makes no decision about a message, and checks neither Host nor
// Origin: package httpguard must wrap the handler. Only this package imports
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

// subprotocol is the name that client and server negotiate.
const subprotocol = "mcp"

// Options configure the handler. The zero value serves all callers as
// anonymous.
type Options struct {
	authn.Middleware
	// Ping is the interval between pings; 0 means 25 s. A client without any data
	// for two intervals is disconnected.
	Ping time.Duration
	// WriteTimeout is the time for the client to read one message, or 64 KiB of a
	// longer one; 0 means 10 s.
	WriteTimeout time.Duration
	// ReadTimeout is the time for the client to send one message, from its first
	// frame to its last; 0 means 30 s.
	ReadTimeout time.Duration
	// Messages bounds the messages being received, and Unread the messages that
	// clients have not read. Nil means no limit.
	Messages, Unread *httpguard.Budget
	// Logger logs clients that are disconnected; nil discards the records.
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

// New returns the handler that upgrades requests to WebSocket. It returns after
// the upgrade; the connection ends when the server drains.
func New(s *mcp.Server, o Options) http.Handler {
	return &handler{
		server: s, options: o.withDefaults(),
		upgrader: websocket.Upgrader{
			HandshakeTimeout: 10 * time.Second,
			WriteBufferPool:  &sync.Pool{},
			Subprotocols:     []string{subprotocol},
			// The guard around this handler has checked the Origin.
			CheckOrigin: func(*http.Request) bool { return true },
		},
	}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.Contains(offered, subprotocol) {
		http.Error(w, "the subprotocol must be "+subprotocol, http.StatusBadRequest)
		return
	}
	principal, source, access, err := h.options.Authenticate(r)
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
	// The upgrader itself answers an invalid handshake.
	socket, err := h.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	socket.SetReadLimit(int64(h.server.MaxMessage()))
	c := &client{socket: socket, options: h.options, access: access, workClient: counts}
	c.unread = h.options.Unread.Hold(counts, (*unreadOwner)(c))
	// The handler returns, so that an idle connection does not keep what net/http
	// allocates for a request, above all its stack.
	go c.serve(context.WithoutCancel(r.Context()), h.server, mcp.Peer{Principal: principal, Source: source, Headers: r.Header, Transport: "websocket"})
}
