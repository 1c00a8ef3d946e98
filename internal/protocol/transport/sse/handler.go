package sse

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options adjust the handlers. The zero value serves everyone as anonymous.
type Options struct {
	authn.Door
	// Messages is the path that clients send their messages to, below the one
	// that the handlers are mounted on; empty stands for "/messages".
	Messages string
	// WriteTimeout is how long a client may take to receive one message, or 64 KiB
	// of a longer one; 0 stands for 10 s. A slower one is dropped.
	WriteTimeout time.Duration
	// KeepAlive is how long a stream may be silent before a comment is sent on
	// it; 0 stands for 15 s.
	KeepAlive time.Duration
	// Answers bounds the messages that wait for their clients to read them; nil
	// stands for no bound.
	Answers *httpguard.Budget
	// Logger is told of clients that are dropped; nil drops it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Messages == "" {
		o.Messages = "/messages"
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

type handler struct {
	server  *mcp.Server
	options Options
	clients clients
}

// New returns the handler that streams are opened on, and the one that takes
// the messages of their clients.
func New(s *mcp.Server, o Options) (streams, messages http.Handler) {
	h := &handler{server: s, options: o.withDefaults()}
	return http.HandlerFunc(h.stream), http.HandlerFunc(h.message)
}

// stream serves one client as long as it holds its stream open.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		httpstream.Refuse(w, http.StatusMethodNotAllowed, "a stream is opened by GET")
		return
	}
	if !httpstream.AcceptOf(r).Events {
		httpstream.Refuse(w, http.StatusNotAcceptable, "the Accept header must list text/event-stream")
		return
	}
	caller, ok := httpstream.Enter(w, r, h.options.Door)
	if !ok {
		return
	}
	if _, err := mcp.AgentFromHeaders(r.Header); err != nil {
		httpstream.Refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	caller.Peer.Transport = "sse"
	h.serve(w, r, caller)
}

// message hands a text to the client whose stream it belongs to.
func (h *handler) message(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpstream.Refuse(w, http.StatusMethodNotAllowed, "messages are sent by POST")
		return
	}
	if !httpstream.Judge(w, r) {
		return
	}
	caller, ok := httpstream.Enter(w, r, h.options.Door)
	if !ok {
		return
	}
	ids := r.URL.Query()[sessionParameter]
	if len(ids) != 1 {
		httpstream.Refuse(w, http.StatusBadRequest, "the request needs the parameter "+sessionParameter+", once: the stream told it in its first event")
		return
	}
	c := h.clients.find(ids[0], caller.Peer.Principal)
	if c == nil {
		unknownSession(w)
		return
	}
	text, ok := httpstream.Read(w, r, h.server.MaxMessage())
	if !ok || !httpstream.Holds(w, r, h.options.Door, caller.Pass) {
		return
	}
	served := httpguard.Keep(r)
	if reply, ok := c.deliver(r.Context(), delivery{sender: caller.Peer, text: text, served: served}); ok {
		httpstream.New(w, h.bounds(r, caller), func() {}).Finish(reply)
		return
	}
	served()
	unknownSession(w)
}

func unknownSession(w http.ResponseWriter) {
	httpstream.Refuse(w, http.StatusNotFound, "unknown session: it ended with its stream; open another")
}

func (h *handler) bounds(r *http.Request, c *httpstream.Caller) httpstream.Options {
	return httpstream.Options{
		Request: httpheader.RequestIDOf(r.Header), Pass: c.Pass, WriteTimeout: h.options.WriteTimeout, KeepAlive: h.options.KeepAlive,
		Logger: h.options.Logger, Transport: "sse",
	}
}
