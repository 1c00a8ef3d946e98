package streamable

import (
	"net/http"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options adjust the handler. The zero value serves everyone as anonymous.
type Options struct {
	authn.Door
	httpstream.Bounds
	// Resume is how long a call waits for a client that has lost the stream
	// of its answer to come back; 0 stands for 1 minute.
	Resume time.Duration
	// Retry is how long clients are told to wait before they come back; 0
	// stands for 1 s.
	Retry time.Duration
	// Keep is how long the events of a stream are kept on which nothing
	// happens; 0 stands for 5 minutes.
	Keep time.Duration
}

func (o Options) withDefaults() Options {
	o.Bounds = o.Bounds.WithDefaults()
	if o.Resume <= 0 {
		o.Resume = time.Minute
	}
	if o.Retry <= 0 {
		o.Retry = time.Second
	}
	if o.Keep <= 0 {
		o.Keep = 5 * time.Minute
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
	events  *events
}

// New returns the handler of the MCP endpoint. It belongs behind a gate, which
// bounds the time that a body takes to arrive.
func New(s *mcp.Server, o Options) http.Handler {
	o = o.withDefaults()
	return &handler{server: s, options: o, events: newEvents(o.Keep)}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, name := range [...]string{headerSession, headerVersion} {
		if len(r.Header[name]) > 1 {
			httpstream.Refuse(w, http.StatusBadRequest, "the header "+name+" is there more than once")
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
		httpstream.Refuse(w, http.StatusMethodNotAllowed, "the endpoint takes POST, GET and DELETE")
	}
}
