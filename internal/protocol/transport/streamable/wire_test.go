package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

var update = flag.Bool("update", false, "write what the server says into the transcripts")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTranscripts(t *testing.T) {
	mcptest.Play(t, "../../../../testdata/wire", "http", *update, func(t *testing.T, s *mcp.Server) mcptest.Link {
		return newLink(t, httptest.NewServer(streamable.New(s, streamable.Options{})))
	})
}

// link is a client over HTTP that sends the headers it should, unless the
// transcript says which.
type link struct {
	t       *testing.T
	web     *httptest.Server
	session string
	lines   chan string
	streams sync.WaitGroup
	bodies  []io.Closer
}

func newLink(t *testing.T, web *httptest.Server) *link {
	return &link{t: t, web: web, lines: make(chan string, 100)}
}

func (l *link) Lines() <-chan string { return l.lines }

func (l *link) Send(header http.Header, text string) {
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.web.URL, strings.NewReader(text))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if len(header) == 0 {
		header = mirror(text)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if l.session != "" {
		r.Header.Set("Mcp-Session-Id", l.session)
	}
	l.receive(r)
	if strings.Contains(text, "notifications/initialized") {
		l.listen()
	}
}

// listen opens the stream of the session.
func (l *link) listen() {
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.web.URL, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", l.session)
	l.receive(r)
}

// receive returns when the response is there, or has become a stream.
func (l *link) receive(r *http.Request) {
	response, err := l.web.Client().Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		l.session = id
	}
	if response.StatusCode >= 300 {
		l.lines <- "HTTP " + response.Status[:3]
	}
	if response.Header.Get("Content-Type") == "text/event-stream" {
		l.bodies = append(l.bodies, response.Body)
		l.streams.Go(func() { l.events(response.Body) })
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Error(err)
	}
	if len(text) > 0 {
		l.lines <- string(text)
	}
}

func (l *link) events(body io.Reader) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			l.lines <- data
		}
	}
}

func (l *link) Close() {
	for _, body := range l.bodies {
		body.Close()
	}
	l.streams.Wait()
	close(l.lines)
	l.web.Close()
}

// mirror returns the headers that a client sends with a modern message.
func mirror(text string) http.Header {
	var m struct {
		Method string
		Params struct {
			Name, URI, TaskID string
			Meta              struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		}
	}
	h := http.Header{}
	if json.Unmarshal([]byte(text), &m) != nil || m.Params.Meta.Version == "" {
		return h
	}
	h.Set("MCP-Protocol-Version", m.Params.Meta.Version)
	h.Set("Mcp-Method", m.Method)
	if name := m.Params.Name + m.Params.URI + m.Params.TaskID; name != "" {
		h.Set("Mcp-Name", name)
	}
	return h
}

// FuzzPost posts a body with headers. The status and the reply are those that
// encoding/json and mime say the request deserves.
func FuzzPost(f *testing.F) {
	for _, text := range mcptest.Hostile() {
		f.Add([]byte(text), "application/json", "application/json, text/event-stream", "", "")
		f.Add([]byte(text), "application/json; charset=utf-8", "*/*", "2026-07-28", "x")
		f.Add([]byte(text), "text/plain", "text/html;q=0", "newest", "y")
	}
	s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{})
	f.Cleanup(func() { _ = s.Drain(context.Background()) })
	handler := streamable.New(s, streamable.Options{})
	f.Fuzz(func(t *testing.T, body []byte, kind, accept, version, session string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // what listens for changes has no other end
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header = http.Header{"Content-Type": {kind}, "Accept": {accept}}
		if version != "" {
			r.Header.Set("MCP-Protocol-Version", version)
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		answer := w.Body.String()
		if w.Header().Get("Content-Type") == "text/event-stream" {
			return // nothing is told before the result by the tools that there are
		}
		var replies []mcptest.Reply
		if answer != "" {
			var ok bool
			if replies, ok = mcptest.Replies([]string{answer}); !ok || len(replies) != 1 {
				t.Fatalf("the answer is %q", answer)
			}
		}
		if refused := w.Code >= 300; refused && (len(replies) == 0 || !replies[0].Error) {
			t.Fatalf("status %d with %q", w.Code, answer)
		}
		judge(t, r.Header, body, w.Code, replies)
	})
}

func isServed(version string) bool {
	_, ok := mcp.RefuseVersion(http.Header{"Mcp-Protocol-Version": {version}})
	return ok
}

// judge holds the answer to a request to what the request deserves.
func judge(t *testing.T, h http.Header, body []byte, status int, replies []mcptest.Reply) {
	t.Helper()
	version, session := h.Get("MCP-Protocol-Version"), h.Get("Mcp-Session-Id")
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	e := mcptest.Expect(body, jsonguard.Check(body, jsonguard.Limits{}) == nil)
	e.Ping = e.Ping && version == "" && session == ""
	unserved := version != "" && !isServed(version)
	lost := session != "" && version != "2026-07-28"
	switch {
	case status == http.StatusNotAcceptable:
	case err != nil || media != "application/json":
		if status != http.StatusUnsupportedMediaType {
			t.Fatalf("status %d for another content type", status)
		}
	case len(replies) == 0:
		if status != http.StatusAccepted || e.Reply {
			t.Fatalf("status %d and no reply, want %+v", status, e)
		}
	case unserved || lost:
		if e.Error && !replies[0].Error {
			t.Fatalf("status %d with %+v, want an error", status, replies)
		}
	case !e.Fits(replies[0]):
		t.Fatalf("status %d with %+v, want %+v", status, replies, e)
	}
}
