package authn_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn"
)

// TestLogLimiter also checks the count of suppressed messages.
func TestLogLimiter(t *testing.T) {
	var s authn.LogLimiter
	now := time.Unix(1_000_000, 0)
	notified, suppressed := 0, 0
	flood := func(n int) {
		for range n {
			if before, tell := s.Allow(now); tell {
				notified++
				suppressed += before
			}
		}
	}
	flood(1000)
	if notified != 20 || suppressed != 0 {
		t.Errorf("%d of 1,000 allowed, %d suppressed before them; want 20 and 0", notified, suppressed)
	}
	now = now.Add(time.Second)
	flood(1)
	if notified != 21 || suppressed != 980 {
		t.Errorf("in the next second %d allowed in total, %d suppressed; want 21 and 980", notified, suppressed)
	}
	now = now.Add(-time.Hour) // the clock is set back
	flood(1)
	if notified != 22 || suppressed != 980 {
		t.Errorf("after setting the clock back %d allowed, %d suppressed; want 22 and 980", notified, suppressed)
	}
}

// TestMiddleware_logLimiter: copies of a Middleware share the limit.
func TestMiddleware_logLimiter(t *testing.T) {
	var log strings.Builder
	guard := authn.Middleware{Logger: slog.New(slog.NewTextHandler(&log, nil)), LogLimiter: new(authn.LogLimiter)}
	for range 200 {
		same := guard
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		same.Reject(http.Header{}, r, http.ErrNoCookie)
	}
	// The first second may have ended meanwhile.
	if lines := strings.Count(log.String(), "reject request"); lines < 20 || lines == 200 {
		t.Errorf("%d of 200 rejections logged, want 20 per second", lines)
	}
}
