package transport_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// httpLink is an HTTP client. It sends the correct headers, unless the
// transcript sets them.
type httpLink struct {
	t       *testing.T
	web     *httptest.Server
	session string
	lines   chan string
	streams sync.WaitGroup
	bodies  []io.Closer
}

func dialHTTP(t *testing.T, s *mcp.Server) link {
	return &httpLink{t: t, web: httptest.NewServer(streamable.New(s, streamable.Options{})), lines: make(chan string, 100)}
}

func (l *httpLink) Lines() <-chan string { return l.lines }

func (l *httpLink) Send(header http.Header, text string) {
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
func (l *httpLink) listen() {
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.web.URL, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", l.session)
	l.receive(r)
}

// receive returns when the response has ended, or is a stream.
func (l *httpLink) receive(r *http.Request) {
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

func (l *httpLink) events(body io.Reader) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			l.lines <- data
		}
	}
}

func (l *httpLink) Close() {
	for _, body := range l.bodies {
		body.Close()
	}
	l.streams.Wait()
	close(l.lines)
	l.web.Close()
}

// mirror returns the headers that mirror a modern message.
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

// stdioLink is a client on a pair of pipes.
type stdioLink struct {
	in    *io.PipeWriter
	lines chan string
	done  chan error
}

func dialStdio(t *testing.T, s *mcp.Server) link {
	clientIn, serverOut := io.Pipe()
	serverIn, clientOut := io.Pipe()
	l := &stdioLink{in: clientOut, lines: make(chan string, 100), done: make(chan error, 1)}
	go func() {
		err := stdio.Serve(t.Context(), s, mcp.Peer{Principal: identity.Anonymous()}, serverIn, serverOut, stdio.Options{Grace: time.Minute})
		serverOut.Close()
		l.done <- err
	}()
	go func() {
		defer close(l.lines)
		lines := bufio.NewScanner(clientIn)
		for lines.Scan() {
			l.lines <- lines.Text()
		}
	}()
	return l
}

func (l *stdioLink) Send(_ http.Header, text string) {
	// A server that has ended accepts nothing, as the transcript shows.
	_, _ = io.WriteString(l.in, text+"\n")
}

func (l *stdioLink) Lines() <-chan string { return l.lines }

func (l *stdioLink) Close() {
	l.in.Close()
	<-l.done
}

// socketLink is a client on a WebSocket.
type socketLink struct {
	socket  *gorilla.Conn
	web     *httptest.Server
	lines   chan string
	reading bool
}

func dialWebSocket(t *testing.T, s *mcp.Server) link {
	web := httptest.NewServer(websocket.New(s, websocket.Options{}))
	dialer := gorilla.Dialer{Subprotocols: []string{"mcp"}}
	socket, _, err := dialer.DialContext(t.Context(), strings.Replace(web.URL, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &socketLink{socket: socket, web: web, lines: make(chan string, 100)}
}

func (l *socketLink) Send(_ http.Header, text string) {
	// A server that has ended accepts nothing, as the transcript shows.
	_ = l.socket.WriteMessage(gorilla.TextMessage, []byte(text))
}

func (l *socketLink) Lines() <-chan string {
	if !l.reading {
		l.reading = true
		go l.read()
	}
	return l.lines
}

func (l *socketLink) read() {
	defer close(l.lines)
	for {
		_, text, err := l.socket.ReadMessage()
		if err != nil {
			return
		}
		l.lines <- string(text)
	}
}

func (l *socketLink) Close() {
	l.Lines()
	farewell := gorilla.FormatCloseMessage(gorilla.CloseNormalClosure, "")
	_ = l.socket.WriteControl(gorilla.CloseMessage, farewell, time.Now().Add(time.Second))
	for range l.lines {
		// Later messages are not part of the transcript.
	}
	l.socket.Close()
	l.web.Close()
}

// sseLink is a client with an open stream.
type sseLink struct {
	t        *testing.T
	web      *httptest.Server
	stream   *http.Response
	endpoint string
	lines    chan string
}

func dialSSE(t *testing.T, s *mcp.Server) link {
	mux := http.NewServeMux()
	streams, messages := sse.New(s, sse.Options{})
	mux.Handle("/sse", streams)
	mux.Handle("/messages", messages)
	l := &sseLink{t: t, web: httptest.NewServer(mux), lines: make(chan string, 100)}
	t.Cleanup(l.web.Close)
	l.stream = l.do(http.MethodGet, "/sse", "")
	lines := bufio.NewScanner(l.stream.Body)
	for l.endpoint == "" && lines.Scan() {
		l.endpoint, _ = strings.CutPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(l.endpoint, "/") {
			l.endpoint = "" // event name
		}
	}
	if l.endpoint == "" {
		t.Fatal("the stream sent no endpoint")
	}
	go func() {
		defer close(l.lines)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				l.lines <- data
			}
		}
	}()
	return l
}

func (l *sseLink) do(method, path, body string) *http.Response {
	r, err := http.NewRequestWithContext(l.t.Context(), method, l.web.URL+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := l.web.Client().Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	return response
}

// Send reports a rejected message as if the response had arrived on the stream.
func (l *sseLink) Send(_ http.Header, text string) {
	response := l.do(http.MethodPost, l.endpoint, text)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		l.lines <- string(body)
	}
}

func (l *sseLink) Lines() <-chan string { return l.lines }

func (l *sseLink) Close() {
	l.stream.Body.Close()
	for range l.lines {
		// Later messages are not part of the transcript.
	}
	l.web.CloseClientConnections()
}
