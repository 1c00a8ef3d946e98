package rest

import (
	"cmp"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// The paths that the handler serves.
const (
	CapabilitiesPath = "/mcp/capabilities"
	ExecutePath      = "/mcp/execute"
)

// Options adjust the handler. The zero value serves everyone as anonymous.
type Options struct {
	authn.Door
	// Limits bound the body of a request. Zero fields stand for those of
	// [jsonguard.Client].
	Limits jsonguard.Limits
	// Contradicted is told who claims to be another agent than its credential is bound
	// to. Nil is nobody.
	Contradicted func(mcp.Contradiction)
	// Answers bounds the answers that wait for their clients to read them; nil stands
	// for no bound.
	Answers *httpguard.Budget
}

// methods are those of MCP that the paths stand for.
var methods = map[string]string{CapabilitiesPath: "tools/list", ExecutePath: "tools/call"}

type handler struct {
	backend mcp.Backend
	options Options
	joined  joined
}

// New returns a handler for both paths, to which it must be mounted.
func New(b mcp.Backend, o Options) http.Handler {
	if o.Limits.Bytes <= 0 {
		o.Limits.Bytes = jsonguard.Client().Bytes
	}
	return &handler{backend: b, options: o}
}

// ServeHTTP serves one request.
func (h *handler) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w := &responder{ResponseWriter: to, held: h.options.Answers}
	claim, err := mcp.AgentFromHeaders(r.Header)
	if err != nil {
		claim = mcp.AgentClaim{} // an id that is no id is not repeated
	}
	headers := headers{AgentClaim: claim, id: claim.Agent().RequestID, refused: err}
	setHeader(w, headerRequestID, headers.id)
	switch r.URL.Path {
	case CapabilitiesPath:
		if allow(w, r, http.MethodGet, http.MethodHead) {
			h.capabilities(w, r, &headers)
		}
	case ExecutePath:
		if allow(w, r, http.MethodPost) {
			h.execute(w, r, &headers)
		}
	default:
		refuse(w, http.StatusNotFound, "there is nothing here; tools are listed at "+CapabilitiesPath+" and called at "+ExecutePath)
	}
}

// headers are what those of a request claim of its agent.
type headers struct {
	mcp.AgentClaim
	id string // of the request, which they claim or was made for it
	// refused is why they claim nothing, as what they say is no claim; nil otherwise.
	refused *call.Error
}

// allow reports whether the method is one of those; if not, it has answered.
func allow(w *responder, r *http.Request, methods ...string) bool {
	list := ""
	for i, m := range methods {
		if r.Method == m {
			return true
		}
		if i > 0 {
			list += ", "
		}
		list += m
	}
	setHeader(w, "Allow", list)
	refuse(w, http.StatusMethodNotAllowed, "this path takes "+list)
	return false
}

// caller returns who sent a request with the headers; false means that the answer was
// written.
func (h *handler) caller(w *responder, r *http.Request, headers *headers) (_ identity.Caller, _ *authn.Pass, ok bool) {
	principal, source, pass, err := h.options.Enter(r)
	if err != nil {
		h.turnAway(w, r, err)
		return identity.Caller{}, nil, false
	}
	if w.client, ok = httpguard.Enter(r, &principal); !ok {
		writeError(w, &call.Error{Code: call.ExecutionError, Message: httpguard.TooManyInUse, Overloaded: true, RetryAfter: time.Second})
		return identity.Caller{}, nil, false
	}
	caller := identity.Caller{Principal: principal, Source: source}
	bound := h.bind(w, r, &caller, headers.AgentClaim, headers.id, "")
	return caller, pass, bound
}

// turnAway answers a request that may not enter.
func (h *handler) turnAway(w *responder, r *http.Request, err error) {
	status, message := h.options.Refuse(w.Header(), r, err)
	write(w, status, encodeError(call.PolicyDenied, message, nil, ""))
}

// bind sets the agent of a caller, which claims to be one; false means that the answer
// was written: its credential is bound to another. The tool is the one that is called,
// once that is known.
func (h *handler) bind(w *responder, r *http.Request, caller *identity.Caller, claim mcp.AgentClaim, id, tool string) bool {
	claim.RequestID = cmp.Or(claim.RequestID, id)
	var err error
	if caller.Agent, err = claim.Of(&caller.Principal, ""); err != nil {
		if h.options.Contradicted != nil {
			h.options.Contradicted(mcp.Contradiction{Caller: *caller, Method: methods[r.URL.Path], Name: tool, Trace: mcp.TraceOf(r.Header)})
		}
		writeError(w, &call.Error{Code: call.PolicyDenied, Message: err.Error()})
		return false
	}
	return true
}
