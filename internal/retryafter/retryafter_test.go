package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/retryafter"
)

func TestWhoWaitsAsLongAsToldIsNotEarly(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		h := http.Header{}
		retryafter.Set(h, wait)
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", wait, got, want)
		}
	}
}
