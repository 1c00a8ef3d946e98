package httpstream

import (
	"net/http"
	"strconv"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Refuse answers a request that does not reach the protocol.
func Refuse(w http.ResponseWriter, status int, reason string) {
	_ = writeJSON(w, status, mcp.Refuse(mcp.Malformed, reason).Frame, false)
}

// typeJSON is shared by all answers, and never written to.
var typeJSON = []string{"application/json"}

// writeJSON writes the whole response.
func writeJSON(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) error {
	writeHead(w, status, f, flushed)
	_, err := f.WriteTo(w)
	return err
}

// writeHead writes the head of a response. The server tells the length of one that it
// keeps back until the handler returns; one that is flushed tells it here.
func writeHead(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	if flushed {
		h["Content-Length"] = []string{strconv.Itoa(f.Len())}
	}
	w.WriteHeader(status)
}

// statusOf maps a refusal to HTTP (2026-07-28 basic/transports/streamable-http,
// Protocol Version Header and Server Validation; 2025-11-25 basic/transports,
// Session Management).
func statusOf(r mcp.Refusal) int {
	switch r {
	case mcp.Malformed:
		return http.StatusBadRequest
	case mcp.TooLarge:
		return http.StatusRequestEntityTooLarge
	case mcp.UnknownMethod, mcp.UnknownSession:
		return http.StatusNotFound
	case mcp.Forbidden:
		return http.StatusForbidden
	case mcp.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
