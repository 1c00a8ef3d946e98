package websocket_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	client "github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// FuzzMessages sends one message and then a ping. The message gets the reply
// computed with encoding/json, or the connection ends with the code for invalid
// text.
func FuzzMessages(f *testing.F) {
	for _, text := range mcptest.FuzzSeeds() {
		f.Add([]byte(text))
	}
	dial, served := onPipes(f, websocket.Options{})
	dialer := client.Dialer{NetDial: func(string, string) (net.Conn, error) { return dial(), nil }}
	f.Fuzz(func(t *testing.T, text []byte) {
		socket, _, err := dialer.Dial("ws://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			if socket.WriteMessage(client.TextMessage, text) == nil {
				_ = socket.WriteMessage(client.TextMessage, []byte(`{"jsonrpc":"2.0","id":"last","method":"ping"}`))
			}
		}()
		var output []string
		for {
			_, line, err := socket.ReadMessage()
			if err != nil {
				if utf8.Valid(text) || !client.IsCloseError(err, client.CloseInvalidFramePayloadData) {
					t.Fatal(err)
				}
				break
			}
			if output = append(output, string(line)); string(line) == `{"jsonrpc":"2.0","id":"last","result":{}}` {
				break
			}
		}
		socket.Close()
		<-wrote
		<-served
		replies, ok := mcptest.Replies(output)
		if !ok {
			t.Fatalf("got %q", output)
		}
		want := mcptest.Expect(text, jsonguard.Check(text, jsonguard.Limits{}) == nil)
		if utf8.Valid(text) && want.Error && !want.BadParams && !slices.ContainsFunc(replies, want.Fits) {
			t.Fatalf("no reply matches %+v in %q", want, output)
		}
	})
}

// FuzzFrames sends bytes instead of frames. The server sends only messages,
// pongs and close frames, and the connection ends.
func FuzzFrames(f *testing.F) {
	for _, text := range mcptest.FuzzSeeds() {
		f.Add([]byte(frame(whole|0x1, text)))
		f.Add([]byte(frame(0x1, text) + frame(whole|pingFrame, "x") + frame(whole|continuation, text)))
	}
	f.Add([]byte("\x81\x02{}" + frame(whole|0x2, "") + frame(whole|closeFrame, "\x03\xe8bye")))
	dial, served := onPipes(f, websocket.Options{})
	f.Fuzz(func(t *testing.T, frames []byte) {
		conn := dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		if _, err := http.ReadResponse(r, nil); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = conn.Write(frames)
			conn.Close()
		}()
		for {
			first, payload, err := next(r)
			if err != nil {
				break
			}
			switch first {
			case whole | 0x1:
				if _, ok := mcptest.Replies([]string{payload}); !ok {
					t.Errorf("message: %q", payload)
				}
			case whole | closeFrame:
				if len(payload) == 1 || len(payload) > 1 && !utf8.ValidString(payload[2:]) {
					t.Errorf("close frame: %q", payload)
				}
			case whole | pongFrame, whole | pingFrame:
			default:
				t.Errorf("the server sent the frame %#x", first)
			}
		}
		<-served
	})
}

// next reads any frame of the server.
func next(r io.Reader) (first byte, payload string, err error) {
	head := make([]byte, 2, 10)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, "", err
	}
	n := uint64(head[1])
	if size := map[byte]int{126: 2, 127: 8}[head[1]]; size > 0 {
		if _, err := io.ReadFull(r, head[2:2+size]); err != nil {
			return 0, "", err
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-size), head[2:2+size]...))
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return head[0], string(b), err
}
