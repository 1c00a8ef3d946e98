package streamable

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

// Options adjust the handler. The zero value serves everyone as anonymous.
type Options struct {
	authn.Door
	// WriteTimeout is how long a client may take to receive one message, or 64 KiB
	// of a longer one; 0 stands for 10 s. A slower one is dropped.
	WriteTimeout time.Duration
	// KeepAlive is how long a stream may be silent before a comment is sent on
	// it; 0 stands for 15 s.
	KeepAlive time.Duration
	// Resume is how long a call waits for a client that has lost the stream
	// of its answer to come back; 0 stands for 1 minute.
	Resume time.Duration
	// Retry is how long clients are told to wait before they come back; 0
	// stands for 1 s.
	Retry time.Duration
	// Keep is how long the events of a stream are kept on which nothing
	// happens; 0 stands for 5 minutes.
	Keep time.Duration
	// Answers bounds the messages that wait for their clients to read them; nil
	// stands for no bound.
	Answers *httpguard.Budget
	// Logger is told of clients that are dropped; nil stands for nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Resume <= 0 {
		o.Resume = time.Minute
	}
	if o.Retry <= 0 {
		o.Retry = time.Second
	}
	if o.Keep <= 0 {
		o.Keep = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// answers returns the bounds of each response to a caller.
func (o Options) answers(r *http.Request, c *httpstream.Caller) httpstream.Options {
	return httpstream.Options{
		Request: httpheader.RequestIDOf(r.Header), Pass: c.Pass, WriteTimeout: o.WriteTimeout, KeepAlive: o.KeepAlive,
		Answers: o.Answers, Client: c.Client, Logger: o.Logger, Transport: "http",
	}
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
