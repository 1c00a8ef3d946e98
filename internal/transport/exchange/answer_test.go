package exchange

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/mcp"
)

// TestAStreamThatHasEndedIsNotHeld looks for the timer that would hold on to
// the response, with all that it was made of.
func TestAStreamThatHasEndedIsNotHeld(t *testing.T) {
	a := New(httptest.NewRecorder(), Options{WriteTimeout: time.Hour, KeepAlive: time.Hour}, func() {})
	a.Begin()
	a.Finish(mcp.Refuse(mcp.Malformed, "the end"))
	if a.timer.Stop() {
		t.Error("a comment is still to come")
	}
}
