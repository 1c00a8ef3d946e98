// Package retryafter writes the Retry-After header (RFC 9110 section 10.2.3), which
// tells those that were refused when to come back.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Set sets the header to whole seconds, at least one. They are rounded up: who waits as
// long as told is not early.
func Set(h http.Header, wait time.Duration) {
	h["Retry-After"] = []string{strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10)}
}
