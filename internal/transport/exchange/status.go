package exchange

import (
	"net/http"
	"strconv"

	"github.com/mcpd/mcpd/internal/mcp"
)

// Refuse answers a request that does not reach the protocol.
func Refuse(w http.ResponseWriter, status int, reason string) {
	_ = writeJSON(w, status, mcp.Refuse(mcp.Malformed, reason).Frame)
}

// writeJSON writes the whole response.
func writeJSON(w http.ResponseWriter, status int, f mcp.Frame) error {
	h, values := w.Header(), [...]string{"application/json", strconv.Itoa(f.Len())}
	h["Content-Type"], h["Content-Length"] = values[:1:1], values[1:]
	w.WriteHeader(status)
	_, err := f.WriteTo(w)
	return err
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
	case mcp.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
