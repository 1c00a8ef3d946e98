package httpstream

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// TestAStreamThatHasEndedIsNotHeld looks for the timer that would hold on to
// the response, with all that it was made of.
func TestAStreamThatHasEndedIsNotHeld(t *testing.T) {
	a := New(httptest.NewRecorder(), Options{Bounds: Bounds{WriteTimeout: time.Hour, KeepAlive: time.Hour}}, func() {})
	a.Begin()
	a.Finish(mcp.Refuse(mcp.Malformed, "the end"))
	if a.timer.Stop() {
		t.Error("a comment is still to come")
	}
}

// TestAnswer_withoutRoom has the room taken by another answer.
func TestAnswer_withoutRoom(t *testing.T) {
	room := httpguard.NewBudget(16_000)
	large := mcp.Refuse(mcp.Served, strings.Repeat("x", 6000))
	answer := func() int {
		w := httptest.NewRecorder()
		New(w, Options{Bounds: Bounds{WriteTimeout: time.Hour, Answers: room, Logger: slog.New(slog.DiscardHandler)}}, func() {}).Finish(large)
		return w.Code
	}
	other := room.Hold(workqueue.Client{}, nil)
	other.Take(6000)
	if got := answer(); got != http.StatusServiceUnavailable {
		t.Errorf("without room the status is %d", got)
	}
	other.Give()
	for range 3 {
		if got := answer(); got != http.StatusOK {
			t.Errorf("with room the status is %d", got)
		}
	}
}
