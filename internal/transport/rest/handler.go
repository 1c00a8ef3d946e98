package rest

import (
	"net/http"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/authn"
	"github.com/mcpd/mcpd/internal/jsongate"
	"github.com/mcpd/mcpd/internal/mcp"
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
	// [jsongate.Client].
	Limits jsongate.Limits
}

type handler struct {
	backend mcp.Backend
	options Options
	joined  joined
}

// New returns a handler for both paths, to which it must be mounted.
func New(b mcp.Backend, o Options) http.Handler {
	if o.Limits.Bytes <= 0 {
		o.Limits.Bytes = jsongate.Client().Bytes
	}
	return &handler{backend: b, options: o}
}

// ServeHTTP serves one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	claim, err := mcp.AgentFromHeaders(r.Header)
	if err != nil {
		claim = mcp.AgentClaim{} // an id that is no id is not repeated
	}
	agent := claim.Agent()
	setHeader(w, headerRequestID, agent.RequestID)
	if err != nil {
		writeError(w, callError(err))
		return
	}
	switch r.URL.Path {
	case CapabilitiesPath:
		if allow(w, r, http.MethodGet, http.MethodHead) {
			h.capabilities(w, r, agent)
		}
	case ExecutePath:
		if allow(w, r, http.MethodPost) {
			h.execute(w, r, claim, agent)
		}
	default:
		refuse(w, http.StatusNotFound, "there is nothing here; tools are listed at "+CapabilitiesPath+" and called at "+ExecutePath)
	}
}

// allow reports whether the method is one of those; if not, it has answered.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
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

// caller returns who sent a request; false means that the answer was written.
func (h *handler) caller(w http.ResponseWriter, r *http.Request, agent identity.Agent) (identity.Caller, bool) {
	principal, source, err := h.options.Enter(r)
	if err != nil {
		write(w, http.StatusUnauthorized, encodeError(mcp.PolicyDenied, "the credential was not accepted", nil, ""))
		return identity.Caller{}, false
	}
	return identity.Caller{Principal: principal, Agent: agent, Source: source}, true
}
