// Package streamable carries MCP over HTTP: the Streamable HTTP transport of
// the revisions 2025-03-26 to 2026-07-28, on one endpoint.
//
// A POST carries one message. Its response is JSON, unless something precedes
// the result: then it becomes a stream of server-sent events that ends with the
// result. A GET opens the stream of a legacy session's notifications, a DELETE
// ends that session.
//
// A modern client that disconnects cancels its request. The streams of a legacy
// session outlive their connections: a GET with the id of the last event
// resumes the stream while its events are stored.
//
// The package makes no decision about a message, and checks neither Host nor
// Origin: package httpguard must wrap the handler.
package streamable

import (
	"net/http"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options configure the handler. The zero value serves all callers as
// anonymous.
type Options struct {
	authn.Middleware
	httpstream.Bounds
	// ResumeTimeout is how long a call waits for a client that lost its response
	// stream to reconnect; 0 means 1 minute.
	ResumeTimeout time.Duration
	// RetryDelay is the delay that clients are asked to wait before they
	// reconnect; 0 means 1 s.
	RetryDelay time.Duration
	// EventRetention is how long the events of an unused stream are stored; 0
	// means 5 minutes.
	EventRetention time.Duration
}

func (o Options) withDefaults() Options {
	o.Bounds = o.Bounds.WithDefaults()
	if o.ResumeTimeout <= 0 {
		o.ResumeTimeout = time.Minute
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = time.Second
	}
	if o.EventRetention <= 0 {
		o.EventRetention = 5 * time.Minute
	}
	return o
}

// The headers of the transport, in canonical form.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

type handler struct {
	server  *mcp.Server
	options Options
	events  *eventStore
}

// New returns the handler of the MCP endpoint. Package httpguard must wrap it,
// which bounds the time for a body to arrive.
func New(s *mcp.Server, o Options) http.Handler {
	o = o.withDefaults()
	return &handler{server: s, options: o, events: newEventStore(o.EventRetention)}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, name := range [...]string{headerSession, headerVersion} {
		if len(r.Header[name]) > 1 {
			httpstream.WriteError(w, http.StatusBadRequest, "the header "+name+" is there more than once")
			return
		}
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		httpstream.WriteError(w, http.StatusMethodNotAllowed, "the endpoint takes POST, GET and DELETE")
	}
}

// post serves one message (2026-07-28 basic/transports/streamable-http, Sending
// Messages).
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	accepts := httpstream.ParseAccept(r)
	if !accepts.JSON && !accepts.Events {
		httpstream.WriteError(w, http.StatusNotAcceptable, "the Accept header must list application/json and text/event-stream")
		return
	}
	if !httpstream.CheckContentType(w, r) {
		return
	}
	caller, ok := httpstream.Authenticate(w, r, h.options.Middleware)
	if !ok {
		return
	}
	text, ok := httpstream.Read(w, r, h.server.MaxMessage())
	if !ok || !httpstream.CheckAccess(w, r, h.options.Middleware, caller.Access) {
		return
	}
	id := r.Header.Get(headerSession)
	if r.Header.Get(headerVersion) == modernVersion {
		id = "" // this revision has no sessions, and ignores session ids
	}
	if id != "" && accepts.Events {
		if version, ok := h.server.SessionVersion(caller.Peer, id); ok {
			h.postOnSession(w, r, caller, text, version, id)
			return
		}
	}
	// The context ends with the connection, and with the client's access.
	ctx := lazyctx.WithCancel(r.Context())
	defer ctx.Cancel(nil)
	a := httpstream.NewResponse(w, h.options.Options("http", r, caller), func() { ctx.Cancel(nil) })
	x := mcp.Exchange{Peer: caller.Peer, Session: id, Detached: a.Detached(r)}
	if accepts.Events {
		x.Emit = a.Send
	}
	a.Finish(h.server.Exchange(ctx, text, x))
}

// modernVersion is the first revision without sessions.
const modernVersion = "2026-07-28"

// delete ends a legacy session (2025-11-25 basic/transports, Session Management).
func (h *handler) delete(w http.ResponseWriter, r *http.Request) {
	caller, id, ok := h.sessionOf(w, r)
	if !ok {
		return
	}
	if !h.server.EndSession(caller.Peer, id) {
		httpstream.WriteError(w, http.StatusNotFound, "unknown session")
		return
	}
	h.events.drop(id)
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf returns the session that a request without a body names. If it
// returns false, it has written the response. Modern clients may only use POST.
func (h *handler) sessionOf(w http.ResponseWriter, r *http.Request) (caller *httpstream.Caller, id string, ok bool) {
	if no, ok := mcp.CheckVersion(r.Header); !ok {
		httpstream.NewResponse(w, h.options.Options("http", r, &httpstream.Caller{}), func() {}).Finish(no)
		return caller, "", false
	}
	if r.Header.Get(headerVersion) >= modernVersion {
		w.Header().Set("Allow", http.MethodPost)
		httpstream.WriteError(w, http.StatusMethodNotAllowed, "the protocol revision has no sessions")
		return caller, "", false
	}
	if caller, ok = httpstream.Authenticate(w, r, h.options.Middleware); !ok {
		return caller, "", false
	}
	if id = r.Header.Get(headerSession); id == "" {
		httpstream.WriteError(w, http.StatusBadRequest, "the request needs the header "+headerSession)
		return caller, "", false
	}
	return caller, id, true
}

// retryEventVersion is the first revision with streams that start with an
// event without data; older clients would reject it as a broken message.
const retryEventVersion = "2025-11-25"

// headerLastEventID names the last event that the client has received.
const headerLastEventID = "Last-Event-ID"

// get opens or resumes a stream of a legacy session (2025-11-25
// basic/transports, Listening for Messages from the Server).
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	if !httpstream.ParseAccept(r).Events {
		httpstream.WriteError(w, http.StatusNotAcceptable, "the Accept header must list text/event-stream")
		return
	}
	caller, id, ok := h.sessionOf(w, r)
	if !ok {
		return
	}
	version, ok := h.server.SessionVersion(caller.Peer, id)
	if !ok {
		h.writeRefusal(w, r, mcp.UnknownSession)
		return
	}
	last := r.Header.Get(headerLastEventID)
	s, after := h.events.find(id, last)
	switch {
	case s != nil && !strings.HasPrefix(s.id, "g"):
		c := h.newStreamConn(w, r, caller, s, after)
		if c == nil {
			httpstream.WriteError(w, http.StatusBadRequest, "the events after this one are no longer stored")
			return
		}
		c.open()
		c.serve(nil)
	case s == nil && last != "" && !strings.HasPrefix(last, "g"):
		httpstream.WriteError(w, http.StatusBadRequest, "the stream of this event is no longer stored")
	default:
		h.listen(w, r, caller, id, version, s, after)
	}
}

// listen carries the notifications of a session on the resumed stream. Without
// one, or if that is no longer stored, it opens a new stream, which repeats
// missed notifications as far as they still apply.
func (h *handler) listen(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller, id, version string, s *stream, after int) {
	source, refusal := h.server.OpenStream(r.Context(), caller.Peer, id)
	if refusal != mcp.Served {
		h.writeRefusal(w, r, refusal)
		return
	}
	defer source.Close()
	var c *streamConn
	if s != nil {
		c = h.newStreamConn(w, r, caller, s, after)
	}
	if c == nil {
		c = h.newStreamConn(w, r, caller, h.newStream("g", id, version, func() {}), 0)
	}
	c.open()
	c.serve(source)
}

func (h *handler) writeRefusal(w http.ResponseWriter, r *http.Request, refusal mcp.Refusal) {
	httpstream.NewResponse(w, h.options.Options("http", r, &httpstream.Caller{}), func() {}).Finish(mcp.Refuse(refusal, "there is no stream for this session"))
}
