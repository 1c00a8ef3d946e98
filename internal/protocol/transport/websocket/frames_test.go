package websocket_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/websocket"
)

// The first byte of a frame (RFC 6455 section 5.2).
const (
	whole        = 0x80
	reserved     = 0x40
	continuation = 0x0
	text         = 0x1
	pingFrame    = 0x9
	pongFrame    = 0xA
	closeFrame   = 0x8
)

// frame returns a client's frame, masked with zeros.
func frame(first byte, payload string) string {
	b := []byte{first, 0x80}
	switch n := len(payload); {
	case n < 126:
		b[1] |= byte(n)
	case n < 1<<16:
		b[1] |= 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] |= 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(b) + "\x00\x00\x00\x00" + payload
}

// raw opens a WebSocket for frames that the test writes byte by byte.
func raw(t *testing.T, web *httptest.Server, header string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s\r\n", header)
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v, %v", response, err)
	}
	return conn, r, response
}

// receive reads the server's next frame that is not a ping.
func receive(t *testing.T, r *bufio.Reader) (first byte, payload string) {
	t.Helper()
	for {
		first, payload, err := next(r)
		if err != nil {
			t.Fatalf("the connection ended without a close frame: %v", err)
		}
		if first != whole|pingFrame {
			return first, payload
		}
	}
}

// closed reads the code and the reason of a close frame.
func closed(t *testing.T, r *bufio.Reader) (code int, reason string) {
	t.Helper()
	first, payload := receive(t, r)
	if first != whole|closeFrame || len(payload) < 2 {
		t.Fatalf("frame: %#x %q", first, payload)
	}
	return int(binary.BigEndian.Uint16([]byte(payload))), payload[2:]
}

func TestFrames_invalid(t *testing.T) {
	for _, test := range []struct {
		name, bytes string
		want        int
	}{
		{"unmasked frame", "\x81\x02{}", client.CloseProtocolError},
		{"reserved bit", frame(whole|reserved|text, ping), client.CloseProtocolError},
		{"unknown opcode", frame(whole|0x3, ""), client.CloseProtocolError},
		{"fragmented control frame", frame(pingFrame, ""), client.CloseProtocolError},
		{"control frame too long", frame(whole|pingFrame, strings.Repeat("x", 126)), client.CloseProtocolError},
		{"continuation without start", frame(whole|continuation, "{}"), client.CloseProtocolError},
		{"message within a message", frame(text, "{") + frame(whole|text, ping), client.CloseProtocolError},
		{"bytes", frame(whole|0x2, ping), client.CloseUnsupportedData},
		{"invalid UTF-8", frame(whole|text, "\"\xff\""), client.CloseInvalidFramePayloadData},
		{"truncated character", frame(text, "\"\xc3") + frame(whole|continuation, "\""), client.CloseInvalidFramePayloadData},
		{"length too large", "\x81\xff\x00\x00\x00\x00\x7f\xff\xff\xff\x00\x00\x00\x00", client.CloseMessageTooBig},
		{"fragments too long", frame(text, strings.Repeat(" ", 3<<20)) + frame(continuation, strings.Repeat(" ", 3<<20)), client.CloseMessageTooBig},
	} {
		t.Run(test.name, func(t *testing.T) {
			web, _ := newSite(t, websocket.Options{})
			conn, r, _ := raw(t, web, "")
			if _, err := io.WriteString(conn, test.bytes); err != nil {
				t.Fatal(err)
			}
			if code, reason := closed(t, r); code != test.want {
				t.Errorf("code %d (%s), want %d", code, reason, test.want)
			}
		})
	}
}

func TestFrames_fragmented(t *testing.T) {
	web, _ := newSite(t, websocket.Options{})
	conn, r, _ := raw(t, web, "")
	request := `{"jsonrpc":"2.0","id":"ü","method":"ping"}`
	cut := strings.Index(request, "ü") + 1 // within the character
	io.WriteString(conn, frame(text, request[:cut])+frame(whole|pingFrame, "are you there")+frame(whole|continuation, request[cut:]))
	if first, payload := receive(t, r); first != whole|pongFrame || payload != "are you there" {
		t.Errorf("first frame: %#x %q", first, payload)
	}
	if first, payload := receive(t, r); first != whole|text || !strings.Contains(payload, `"id":"ü"`) {
		t.Errorf("second frame: %#x %q", first, payload)
	}
}

func TestHandshake_noCompression(t *testing.T) {
	web, _ := newSite(t, websocket.Options{})
	_, _, response := raw(t, web, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
	if got := response.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Errorf("the server accepted %q", got)
	}
}

// TestRead_timeout leaves a message incomplete and sends pongs all the time.
func TestRead_timeout(t *testing.T) {
	web, _ := newSite(t, websocket.Options{ReadTimeout: 20 * time.Millisecond})
	conn, r, _ := raw(t, web, "")
	ctx, cancel := context.WithCancel(t.Context())
	chatted := make(chan struct{})
	go func() {
		defer close(chatted)
		_, err := io.WriteString(conn, frame(text, "{"))
		for err == nil && ctx.Err() == nil {
			_, err = io.WriteString(conn, frame(whole|pongFrame, ""))
		}
	}()
	if code, reason := closed(t, r); code != client.ClosePolicyViolation {
		t.Errorf("code %d (%s)", code, reason)
	}
	cancel()
	<-chatted
}

// TestRead_budget keeps a message in service on one connection, so that another
// has no room until it has been served.
func TestRead_budget(t *testing.T) {
	running, finish := make(chan struct{}, 2), make(chan struct{})
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result {
		running <- struct{}{}
		<-finish
		return mcptest.Text("")
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	web, _ := newSite(t, websocket.Options{Messages: httpguard.NewBudget(17 * int64(len(call)+len(ping)) / 5)}, tool)
	first := connect(t, web)
	defer first.Close()
	send := func(socket *client.Conn, text string) {
		t.Helper()
		if err := socket.WriteMessage(client.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(socket *client.Conn) {
		t.Helper()
		if _, _, err := socket.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	send(first, call)
	<-running
	second, third := connect(t, web), connect(t, web)
	defer second.Close()
	defer third.Close()
	send(second, call)
	if got := closeCode(t, second); got != client.CloseTryAgainLater {
		t.Errorf("code %d", got)
	}
	send(third, ping)
	read(third)
	close(finish)
	read(first)
	// The room is released after the response is sent.
	for {
		fourth := connect(t, web)
		defer fourth.Close()
		send(fourth, call)
		if _, _, err := fourth.ReadMessage(); err == nil {
			return
		} else if !client.IsCloseError(err, client.CloseTryAgainLater) {
			t.Fatal(err)
		}
	}
}
