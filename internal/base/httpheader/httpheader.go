// Package httpheader reads and writes the HTTP headers that several transports share:
// the id of a request and Retry-After.
//
// Logs, responses and callers identify a request by its id. Ids are neither secret nor
// proof of anything.
package httpheader

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RequestID is the name of the header with the id of a request, in canonical form.
const RequestID = "X-Request-Id"

// MaxRequestID is the maximum length of an id that a caller chooses, in bytes.
const MaxRequestID = 256

// NewRequestID returns a unique id.
func NewRequestID() string {
	var id [32]byte
	return string(strconv.AppendUint(strconv.AppendUint(id[:0], rand.Uint64(), 32), rand.Uint64(), 32))
}

// RequestIDOf returns the id in the headers, or "" if it is missing or invalid.
func RequestIDOf(h http.Header) string {
	if ids := h[RequestID]; len(ids) == 1 && len(ids[0]) <= MaxRequestID && IsVisible(ids[0]) {
		return ids[0]
	}
	return ""
}

// IsVisible reports whether s consists of visible ASCII characters, so that it can be
// sent back in a header.
func IsVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// IsToken reports whether s is a token, such as the name of a header (RFC 9110 section
// 5.6.2).
func IsToken(s string) bool {
	return s != "" && IsVisible(s) && !strings.ContainsAny(s, `"(),/:;<=>?@[\]{}`)
}

// SetRetryAfter sets Retry-After to whole seconds, at least one (RFC 9110 section
// 10.2.3). They are rounded up, so that a client that waits is not early.
func SetRetryAfter(h http.Header, wait time.Duration) {
	h["Retry-After"] = []string{strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10)}
}
