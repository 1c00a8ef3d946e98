package streamable

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// post serves one message (2026-07-28 basic/transports/streamable-http,
// Sending Messages).
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	accepts := httpstream.AcceptOf(r)
	if !accepts.JSON && !accepts.Events {
		httpstream.Refuse(w, http.StatusNotAcceptable, "the Accept header must list application/json and text/event-stream")
		return
	}
	if !httpstream.Judge(w, r) {
		return
	}
	caller, ok := httpstream.Enter(w, r, h.options.Door)
	if !ok {
		return
	}
	text, ok := httpstream.Read(w, r, h.server.MaxMessage())
	if !ok || !httpstream.Holds(w, r, h.options.Door, caller.Pass) {
		return
	}
	id := r.Header.Get(headerSession)
	if r.Header.Get(headerVersion) == modernVersion {
		id = "" // that revision has no sessions, and ignores what names one
	}
	if id != "" && accepts.Events {
		if version, ok := h.server.SessionVersion(caller.Peer, id); ok {
			h.postOnSession(w, r, caller, text, version, mcp.Exchange{Peer: caller.Peer, Session: id})
			return
		}
	}
	// The context ends with the connection, and with what its client has entered by.
	ctx := lazyctx.WithCancel(r.Context())
	defer ctx.Cancel(nil)
	a := httpstream.New(w, h.options.For("http", r, caller), func() { ctx.Cancel(nil) })
	x := mcp.Exchange{Peer: caller.Peer, Session: id, Late: a.LateFor(r)}
	if accepts.Events {
		x.Emit = a.Send
	}
	a.Finish(h.server.Exchange(ctx, text, x))
}
