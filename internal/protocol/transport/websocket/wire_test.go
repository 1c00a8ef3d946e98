package websocket_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

var update = flag.Bool("update", false, "write what the server says into the transcripts")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTranscripts(t *testing.T) {
	mcptest.Play(t, "../../../../testdata/wire", "stream", *update, func(t *testing.T, s *mcp.Server) mcptest.Link {
		web := httptest.NewServer(websocket.New(s, websocket.Options{}))
		return &link{socket: connect(t, web), web: web, lines: make(chan string, 100)}
	})
}

// connect opens a client's end.
func connect(t *testing.T, web *httptest.Server) *client.Conn {
	t.Helper()
	dialer := client.Dialer{Subprotocols: []string{"mcp"}}
	socket, _, err := dialer.DialContext(t.Context(), strings.Replace(web.URL, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return socket
}

// link is a client on a WebSocket.
type link struct {
	socket  *client.Conn
	web     *httptest.Server
	lines   chan string
	reading bool
}

func (l *link) Send(_ http.Header, text string) {
	// A server that has ended takes nothing, which the transcript shows.
	_ = l.socket.WriteMessage(client.TextMessage, []byte(text))
}

func (l *link) Lines() <-chan string {
	if !l.reading {
		l.reading = true
		go l.read()
	}
	return l.lines
}

func (l *link) read() {
	defer close(l.lines)
	for {
		_, text, err := l.socket.ReadMessage()
		if err != nil {
			return
		}
		l.lines <- string(text)
	}
}

func (l *link) Close() {
	l.Lines()
	farewell := client.FormatCloseMessage(client.CloseNormalClosure, "")
	_ = l.socket.WriteControl(client.CloseMessage, farewell, time.Now().Add(time.Second))
	for range l.lines {
		// What comes late is not part of the transcript.
	}
	l.socket.Close()
	l.web.Close()
}
