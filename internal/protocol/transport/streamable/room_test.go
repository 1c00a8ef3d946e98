package streamable_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestACallThatOutlivesItsConnectionKeepsItsRoom has a client leave a call that
// goes on without it.
func TestACallThatOutlivesItsConnectionKeepsItsRoom(t *testing.T) {
	tool, goOn := halting()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	door, err := httpguard.New(httpguard.Options{Bodies: 8 * int64(len(progressing)) / 6})
	if err != nil {
		t.Fatal(err)
	}
	served, inside := make(chan struct{}, 1), door.Wrap(s.web.Config.Handler)
	s.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.ServeHTTP(w, r)
		served <- struct{}{}
	})
	ctx, lose := context.WithCancel(t.Context())
	first, _ := reader(t, s.do(ctx, "POST", progressing, jsonType, session))()
	lose()
	<-served
	if r := s.do(t.Context(), "POST", ping, jsonType, session); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a message beside the call got %s", r.Status)
	}
	<-served
	close(goOn)
	events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+first.id))
	<-served
	if r := s.do(t.Context(), "POST", ping, jsonType, session); r.StatusCode != http.StatusOK {
		t.Errorf("a message after the call got %s", r.Status)
	}
}
