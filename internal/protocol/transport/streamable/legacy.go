package streamable

import (
	"context"
	"net/http"
	"strings"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// primingVersion is the revision from which on a stream begins with an event
// that has no data; clients of older ones would take it for a broken message.
const primingVersion = "2025-11-25"

const headerLastEvent = "Last-Event-Id"

// postOnSession serves a text of a legacy session. Once something was sent
// before the answer, the client may lose the connection and come back for the
// rest; before that, what it asked for ends with the connection.
func (h *handler) postOnSession(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller, text []byte, version string, x mcp.Exchange) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	s := h.newStream("p", x.Session, version, cancel)
	x.Emit = s.send
	if s.primes {
		x.CloseStream = s.close
	}
	c := h.newCarrier(w, r, caller, s, 0)
	give := httpguard.Keep(r)
	go func() {
		defer cancel()
		reply := h.server.Exchange(ctx, text, x)
		give()
		s.finish(reply)
	}()
	c.carry(nil)
}

// get opens the stream of a legacy session, or resumes one (2025-11-25
// basic/transports, Listening for Messages from the Server).
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	if !httpstream.AcceptOf(r).Events {
		httpstream.Refuse(w, http.StatusNotAcceptable, "the Accept header must list text/event-stream")
		return
	}
	caller, id, ok := h.sessionOf(w, r)
	if !ok {
		return
	}
	version, ok := h.server.SessionVersion(caller.Peer, id)
	if !ok {
		h.turnAway(w, r, mcp.UnknownSession)
		return
	}
	last := r.Header.Get(headerLastEvent)
	s, after := h.events.find(id, last)
	switch {
	case s != nil && !strings.HasPrefix(s.id, "g"):
		c := h.newCarrier(w, r, caller, s, after)
		if c == nil {
			httpstream.Refuse(w, http.StatusBadRequest, "the events after this one are not kept any more")
			return
		}
		c.open()
		c.carry(nil)
	case s == nil && last != "" && !strings.HasPrefix(last, "g"):
		httpstream.Refuse(w, http.StatusBadRequest, "the stream of this event is not kept any more")
	default:
		h.listen(w, r, caller, id, version, s, after)
	}
}

// listen carries what the server tells a session of its own accord: on the
// stream that the client resumes, or on a new one when it resumes none, or one
// that is not kept any more. What is missed then is told anew as far as it
// still holds.
func (h *handler) listen(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller, id, version string, s *stream, after int) {
	source, refusal := h.server.OpenStream(r.Context(), caller.Peer, id)
	if refusal != mcp.Served {
		h.turnAway(w, r, refusal)
		return
	}
	defer source.Close()
	var c *carrier
	if s != nil {
		c = h.newCarrier(w, r, caller, s, after)
	}
	if c == nil {
		c = h.newCarrier(w, r, caller, h.newStream("g", id, version, func() {}), 0)
	}
	c.open()
	c.carry(source)
}

func (h *handler) turnAway(w http.ResponseWriter, r *http.Request, refusal mcp.Refusal) {
	httpstream.New(w, h.options.For("http", r, &httpstream.Caller{}), func() {}).Finish(mcp.Refuse(refusal, "there is no stream for this session"))
}
