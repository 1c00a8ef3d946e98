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

// SessionOf returns the legacy session that a request names; "" if there is none, or if the request is
// invalid or of a revision that ignores it.
func SessionOf(r *http.Request) string {
	ids, versions := r.Header[headerSession], r.Header[headerVersion]
	if len(ids) != 1 || len(versions) > 1 || len(versions) == 1 && versions[0] >= modernVersion {
		return ""
	}
	return ids[0]
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
