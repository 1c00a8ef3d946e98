// Package rest serves the REST API of the RFC (section 13): GET
// /mcp/capabilities lists the tools, POST /mcp/execute calls one.
//
// A [New] handler translates between JSON and an [mcp.Backend]. Every response
// carries its X-Request-Id. The formats and the five error codes are a stable
// contract, pinned by the files in testdata/contract.
//
// The package makes no decision about a call, sends nothing before its result,
// and does not check the origin of a request: package httpguard must wrap the
// handler.
package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
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

// Options configure the handler. The zero value serves all callers as
// anonymous.
type Options struct {
	authn.Middleware
	// Limits bound the body of a request. Zero fields take the values of
	// [jsonguard.Client].
	Limits jsonguard.Limits
	// OnAgentMismatch is called for each request whose claimed agent is not the
	// agent that its credential is bound to. It may be nil.
	OnAgentMismatch func(mcp.AgentMismatch)
	// Unread bounds the responses that clients have not read; nil means no limit.
	Unread *httpguard.Budget
}

// methods are the MCP methods that the paths correspond to.
var methods = map[string]string{CapabilitiesPath: "tools/list", ExecutePath: "tools/call"}

type handler struct {
	backend mcp.Backend
	options Options
	pages   pageCache
}

// New returns a handler that must be mounted on both paths.
func New(b mcp.Backend, o Options) http.Handler {
	if o.Limits.Bytes <= 0 {
		o.Limits.Bytes = jsonguard.Client().Bytes
	}
	return &handler{backend: b, options: o}
}

// ServeHTTP serves one request.
func (h *handler) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w := &responder{ResponseWriter: to, budget: h.options.Unread}
	claim, err := mcp.AgentFromHeaders(r.Header)
	if err != nil {
		claim = mcp.AgentClaim{} // an invalid id is not repeated
	}
	headers := claimHeaders{AgentClaim: claim, id: claim.Agent().RequestID, refused: err}
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

// claimHeaders is the agent claim in the headers of a request.
type claimHeaders struct {
	mcp.AgentClaim
	id string // request id, claimed or generated
	// refused is the error of an invalid claim; nil if it is valid.
	refused *call.Error
}

// allow reports whether the request has one of the methods. If not, it has
// written the response.
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

// caller returns the caller of a request. If ok is false, it has written the
// response.
func (h *handler) caller(w *responder, r *http.Request, headers *claimHeaders) (_ identity.Caller, _ *authn.Access, ok bool) {
	principal, source, access, err := h.options.Authenticate(r)
	if err != nil {
		h.writeAuthError(w, r, err)
		return identity.Caller{}, nil, false
	}
	if w.client, ok = httpguard.Admit(r, &principal); !ok {
		writeError(w, &call.Error{Code: call.ExecutionError, Message: httpguard.TooManyInUse, Overloaded: true, RetryAfter: time.Second})
		return identity.Caller{}, nil, false
	}
	caller := identity.Caller{Principal: principal, Source: source}
	bound := h.bind(w, r, &caller, headers.AgentClaim, headers.id, "")
	return caller, access, bound
}

func (h *handler) writeAuthError(w *responder, r *http.Request, err error) {
	status, message := h.options.Reject(w.Header(), r, err)
	write(w, status, encodeError(call.PolicyDenied, message, nil, ""))
}

// bind sets the agent of a caller from its claim. If it returns false, it has
// written the response, because the credential is bound to another agent. tool
// is the called tool, or empty before it is known.
func (h *handler) bind(w *responder, r *http.Request, caller *identity.Caller, claim mcp.AgentClaim, id, tool string) bool {
	claim.RequestID = cmp.Or(claim.RequestID, id)
	var err error
	if caller.Agent, err = claim.Of(&caller.Principal, ""); err != nil {
		if h.options.OnAgentMismatch != nil {
			h.options.OnAgentMismatch(mcp.AgentMismatch{Caller: *caller, Method: methods[r.URL.Path], Name: tool, Trace: mcp.TraceOf(r.Header)})
		}
		writeError(w, &call.Error{Code: call.PolicyDenied, Message: err.Error()})
		return false
	}
	return true
}

func (h *handler) capabilities(w *responder, r *http.Request, headers *claimHeaders) {
	caller, _, ok := h.caller(w, r, headers)
	if !ok {
		return
	}
	if headers.refused != nil {
		writeError(w, headers.refused)
		return
	}
	list := h.backend.List(r.Context(), call.Tools, caller)
	page := h.pages.page(h.backend.Info(), list)
	setHeader(w, "Etag", page.etag)
	// Any cache may store a copy, and must revalidate it each time.
	cache := "no-cache"
	if list.Private {
		cache = "private, no-cache"
	}
	setHeader(w, "Cache-Control", cache)
	if notModified(r.Header["If-None-Match"], page.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, page.body)
}

// notModified reports whether the client has the current copy (RFC 9110 section
// 13.1.2).
func notModified(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// page is an encoded response.
type page struct {
	body []byte
	etag string
}

// pageKey identifies the content of a page.
type pageKey struct{ server, version, hash string }

// maxPages bounds the cached pages: one for each list that callers see.
const maxPages = 16

// pageCache caches pages. The zero value is empty.
type pageCache struct {
	mu    sync.Mutex
	pages map[pageKey]page
}

// page returns the page of a list, encoded once per hash.
func (c *pageCache) page(info mcp.Info, list mcp.List) page {
	key := pageKey{info.Name, info.Version, list.Hash}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.pages[key]; ok {
		return p
	}
	if c.pages == nil {
		c.pages = map[pageKey]page{}
	}
	if len(c.pages) == maxPages {
		clear(c.pages) // most are of lists that are no longer served
	}
	p := newPage(info, list.Entries)
	c.pages[key] = p
	return p
}

func newPage(info mcp.Info, tools []*mcp.Entry) page {
	size := len(`{"server":,"version":,"tools":[]}`) + 2*len(info.Name) + 2*len(info.Version)
	for _, t := range tools {
		size += len(t.Capability()) + len(",")
	}
	body := make([]byte, 0, size)
	body = append(append(body, `{"server":`...), quote(info.Name)...)
	body = append(append(body, `,"version":`...), quote(info.Version)...)
	body = append(body, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, t.Capability()...)
	}
	body = append(body, "]}"...)
	sum := sha256.Sum256(body)
	return page{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}
