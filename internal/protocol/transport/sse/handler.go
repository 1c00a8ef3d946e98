package sse

import (
	"net/http"
	"sync"

	"github.com/mcpd/mcpd/internal/auth/authn"
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
	httpstream.Bounds
}

type handler struct {
	server  *mcp.Server
	options Options
	clients sync.Map // *client by the id of its session
}

// New returns the handler that streams are opened on, and the one that takes
// the messages of their clients.
func New(s *mcp.Server, o Options) (streams, messages http.Handler) {
	if o.Messages == "" {
		o.Messages = "/messages"
	}
	o.Bounds = o.Bounds.WithDefaults()
	h := &handler{server: s, options: o}
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
	found, _ := h.clients.Load(ids[0])
	c, ok := found.(*client)
	if !ok || !c.conn.BelongsTo(caller.Peer.Principal) {
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

// bounds returns the options of a response. The outbox of the stream, not the response,
// takes room for what waits.
func (h *handler) bounds(r *http.Request, c *httpstream.Caller) httpstream.Options {
	b := h.options.Bounds
	b.Answers = nil
	return b.For("sse", r, c)
}
