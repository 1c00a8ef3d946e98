package engine_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// No goroutine may remain; TestMain checks that.
func TestUpstream_closeWhileConnecting(t *testing.T) {
	connected := make(chan struct{}, 8)
	hangs := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		connected <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the connection by reading
		<-r.Context().Done()
	}))
	s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(hangs)+"upstream \"deaf\" {\n  command = [\"sleep\", \"3600\"]\n}\n")}})
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		_, _ = s.Load(t.Context())
	}()
	<-connected
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-loaded
}
