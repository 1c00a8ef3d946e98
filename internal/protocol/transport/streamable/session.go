package streamable

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// modernVersion is the revision from which on there are no sessions.
const modernVersion = "2026-07-28"

// delete ends a legacy session (2025-11-25 basic/transports, Session Management).
func (h *handler) delete(w http.ResponseWriter, r *http.Request) {
	caller, id, ok := h.sessionOf(w, r)
	if !ok {
		return
	}
	if !h.server.EndSession(caller.Peer, id) {
		httpstream.Refuse(w, http.StatusNotFound, "unknown session")
		return
	}
	h.events.drop(id)
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf returns the session that a request without a body names; false
// means that the answer was written. To a modern client, the endpoint takes
// POST alone.
func (h *handler) sessionOf(w http.ResponseWriter, r *http.Request) (caller *httpstream.Caller, id string, ok bool) {
	if no, ok := mcp.RefuseVersion(r.Header); !ok {
		httpstream.New(w, h.options.For("http", r, &httpstream.Caller{}), func() {}).Finish(no)
		return caller, "", false
	}
	if r.Header.Get(headerVersion) >= modernVersion {
		w.Header().Set("Allow", http.MethodPost)
		httpstream.Refuse(w, http.StatusMethodNotAllowed, "the protocol revision has no sessions")
		return caller, "", false
	}
	if caller, ok = httpstream.Enter(w, r, h.options.Door); !ok {
		return caller, "", false
	}
	if id = r.Header.Get(headerSession); id == "" {
		httpstream.Refuse(w, http.StatusBadRequest, "the request needs the header "+headerSession)
		return caller, "", false
	}
	return caller, id, true
}
