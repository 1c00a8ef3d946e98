// Package requestid makes the ids by which logs, answers and callers know a request, and
// reads those that callers choose. They prove nothing, and are no secret.
package requestid

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// Header carries the id of a request and of its answer, in canonical form.
const Header = "X-Request-Id"

// Most is how long an id may be that a caller chooses, in bytes.
const Most = 256

// New returns an id that no other request has.
func New() string {
	var id [32]byte
	return string(strconv.AppendUint(strconv.AppendUint(id[:0], rand.Uint64(), 32), rand.Uint64(), 32))
}

// IsVisible reports whether an id can be sent back in a header.
func IsVisible(id string) bool {
	return !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Of returns the id that headers give; "" when they give none, or what is none.
func Of(h http.Header) string {
	if ids := h[Header]; len(ids) == 1 && len(ids[0]) <= Most && IsVisible(ids[0]) {
		return ids[0]
	}
	return ""
}
