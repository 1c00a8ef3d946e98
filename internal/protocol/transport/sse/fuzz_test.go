package sse_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves both routes.
func serve(t *testing.T, s *mcp.Server, o sse.Options) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	streams, messages := sse.New(s, o)
	mux.Handle("/sse", streams)
	mux.Handle("/messages", messages)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web
}

// link is a client with an open stream.
type link struct {
	t        *testing.T
	web      *httptest.Server
	stream   *http.Response
	endpoint string
	lines    chan string
}

// open opens a stream with header lines "Name: value".
func open(t *testing.T, web *httptest.Server, header ...string) *link {
	t.Helper()
	l := &link{t: t, web: web, lines: make(chan string, 100)}
	l.stream = do(t, web, http.MethodGet, "/sse", "", header...)
	events := bufio.NewReader(l.stream.Body)
	if name, data := event(t, events); name != "endpoint" {
		t.Fatalf("first event: %q: %q", name, data)
	} else {
		l.endpoint = data
	}
	go func() {
		defer close(l.lines)
		lines := bufio.NewScanner(events)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				l.lines <- data
			}
		}
	}()
	return l
}

// event reads one event.
func event(t *testing.T, r *bufio.Reader) (name, data string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if value, ok := strings.CutPrefix(line, "event: "); ok {
			name = value
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok {
			data = value
		}
		if line == "" && name != "" {
			return name, data
		}
	}
}

// do sends a request; the body of the response is closed when the test ends.
func do(t *testing.T, web *httptest.Server, method, path, body string, header ...string) *http.Response {
	t.Helper()
	target, err := url.Parse(web.URL)
	if err == nil {
		target, err = target.Parse(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	response, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// post sends a message and returns the status and the body of the response.
func (l *link) post(text string) (int, string) {
	l.t.Helper()
	response := do(l.t, l.web, http.MethodPost, l.endpoint, text, "Content-Type: application/json")
	body, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode, string(body)
}

// FuzzMessages posts a body, and then a ping. The body gets the reply computed
// with encoding/json, in the response or on the stream, and the ping always
// gets its response.
func FuzzMessages(f *testing.F) {
	for _, text := range mcptest.FuzzSeeds() {
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
		var output []string
		if status, refusal := post(text); status >= http.StatusMultipleChoices {
			output = append(output, refusal)
		} else if status != http.StatusAccepted || refusal != "" {
			t.Fatalf("status %d with %q", status, refusal)
		}
		if status, body := post([]byte(last)); status != http.StatusAccepted {
			t.Fatalf("ping: status %d, %s", status, body)
		}
		for _, line := event(t, events); line != answered; _, line = event(t, events) {
			output = append(output, line)
		}
		replies, ok := mcptest.Replies(output)
		if !ok {
			t.Fatalf("got %q", output)
		}
		want := mcptest.Expect(text, jsonguard.Check(text, jsonguard.Limits{}) == nil)
		if want.Error && !want.BadParams && !slices.ContainsFunc(replies, want.Fits) || !want.Reply && len(replies) > 0 {
			t.Fatalf("got %q, want %+v", output, want)
		}
	})
}

// held opens a stream without a connection that ends with the test, and returns
// the events after the first.
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
