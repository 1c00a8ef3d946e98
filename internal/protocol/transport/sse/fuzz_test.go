package sse_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

// FuzzMessages posts a body, and then a ping. The body gets the reply that
// encoding/json says it deserves, in the response or on the stream, and the
// ping is answered whatever it was.
func FuzzMessages(f *testing.F) {
	for _, text := range mcptest.Hostile() {
		f.Add([]byte(text))
	}
	s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{})
	f.Cleanup(func() { _ = s.Drain(context.Background()) })
	streams, messages := sse.New(s, sse.Options{})
	const last, answered = `{"jsonrpc":"2.0","id":"last","method":"ping"}`, `{"jsonrpc":"2.0","id":"last","result":{}}`
	f.Fuzz(func(t *testing.T, text []byte) {
		events, endpoint := held(t, streams)
		post := func(body []byte) (int, string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			messages.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		var said []string
		if status, refusal := post(text); status >= http.StatusMultipleChoices {
			said = append(said, refusal)
		} else if status != http.StatusAccepted || refusal != "" {
			t.Fatalf("status %d with %q", status, refusal)
		}
		if status, body := post([]byte(last)); status != http.StatusAccepted {
			t.Fatalf("the ping behind it: status %d, %s", status, body)
		}
		for _, line := event(t, events); line != answered; _, line = event(t, events) {
			said = append(said, line)
		}
		replies, ok := mcptest.Replies(said)
		if !ok {
			t.Fatalf("the server said %q", said)
		}
		want := mcptest.Expect(text, jsonguard.Check(text, jsonguard.Limits{}) == nil)
		if want.Error && !want.Odd && !slices.ContainsFunc(replies, want.Fits) || !want.Reply && len(replies) > 0 {
			t.Fatalf("the server said %q, want %+v", said, want)
		}
	})
}

// held opens a stream that ends with the test, on no connection, and returns
// what follows its first event.
func held(t *testing.T, streams http.Handler) (events *bufio.Reader, endpoint string) {
	ctx, leave := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		streams.ServeHTTP(&piped{http.Header{}, w}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/sse", strings.NewReader("")))
	}()
	t.Cleanup(func() {
		leave()
		r.Close()
		<-ended
	})
	events = bufio.NewReader(r)
	_, endpoint = event(t, events)
	return events, endpoint
}

// piped is a response that is read from a pipe.
type piped struct {
	header http.Header
	io.Writer
}

func (p *piped) Header() http.Header { return p.header }
func (*piped) WriteHeader(int)       {}
func (*piped) Flush()                {}
