package streamable

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// headerLastEventID has the id of the last event that the client has received.
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
	case s != nil && !isListening(s.id):
		c := h.newStreamConn(w, r, caller, s, after)
		if c == nil {
			httpstream.WriteError(w, http.StatusBadRequest, "the events after this one are no longer stored")
			return
		}
		c.open()
		c.serve(nil)
	case s == nil && last != "" && !isListening(last):
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
		c = h.newStreamConn(w, r, caller, h.newStream(listening, id, version, func() {}), 0)
	}
	c.open()
	c.serve(source)
}

func (h *handler) writeRefusal(w http.ResponseWriter, r *http.Request, refusal mcp.Refusal) {
	httpstream.NewResponse(w, h.options.Options("http", r, &httpstream.Caller{}), func() {}).Finish(mcp.Refuse(refusal, "there is no stream for this session"))
}
