package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/serve"
)

// maxIdle is the maximum memory of an idle session in bytes. Both ends of its
// connection, if any, are in this process and count.
const maxIdle = 32 << 10

// TestIdleSession_memory opens legacy sessions without a connection. With MCPD_LONG it
// opens 10,000, the maximum.
func TestIdleSession_memory(t *testing.T) {
	site := openSite(t)
	site.open(t, 10)
	judgeIdle(t, scaled(1000, 10_000), func(n int) { site.open(t, n) })
}

// TestOpenStream_memory opens sessions with one open stream each.
func TestOpenStream_memory(t *testing.T) {
	site := openSite(t)
	site.listen(t, site.open(t, 1)[0])
	judgeIdle(t, scaled(200, 2000), func(n int) {
		for _, id := range site.open(t, n) {
			site.listen(t, id)
		}
	})
}

// TestIdleWebSocket_memory opens WebSockets that each sent a ping.
func TestIdleWebSocket_memory(t *testing.T) {
	site := openSite(t)
	site.upgrade(t)
	judgeIdle(t, scaled(200, 1000), func(n int) {
		for range n {
			site.upgrade(t)
		}
	})
}

// maxIdleServer is the maximum memory of the processes of an idle server with the tools of
// tools.d, in bytes.
const maxIdleServer = 36 << 20

// TestIdleServer_memory waits until an idle server has returned the memory of its start.
func TestIdleServer_memory(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	server := &apart{name: "mcpd"}
	server.start(t, 0, buildMCPD(t), "serve", "--listen", "127.0.0.1:0", "--tools", "../tools.d", "--control", "off")
	used := int64(0)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		used = memoryOf(append(startedBy(server.id), server.id))
		if used <= maxIdleServer {
			t.Logf("%d KiB", used>>10)
			return
		}
	}
	t.Errorf("an idle server uses %d KiB, want at most %d", used>>10, maxIdleServer>>10)
}

// scaled returns the number to open: more with MCPD_LONG.
func scaled(few, many int) int {
	if os.Getenv("MCPD_LONG") != "" {
		return many
	}
	return few
}

// judgeIdle opens n items and checks the memory of one. It checks nothing under the
// race detector, which uses memory itself.
func judgeIdle(t *testing.T, n int, open func(n int)) {
	t.Helper()
	if cputest.Race() {
		t.Skip("the race detector uses memory itself")
	}
	before := inUse()
	open(n)
	cost := (inUse() - before) / int64(n)
	t.Logf("each uses %d bytes", cost)
	if cost > maxIdle {
		t.Errorf("each uses %d bytes, want at most %d", cost, maxIdle)
	}
}

// site is an HTTP server with a connection to it.
type site struct {
	address string
	conn    net.Conn
	answers *bufio.Reader
}

func openSite(t *testing.T) *site {
	t.Helper()
	front := serve.New(native(t), serve.Options{})
	h, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		_ = front.Shutdown(context.Background())
		web.Close()
	})
	s := &site{address: web.Listener.Addr().String()}
	s.conn = s.dial(t)
	s.answers = bufio.NewReader(s.conn)
	return s
}

func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// open opens a number of sessions and returns their ids.
func (s *site) open(t *testing.T, sessions int) []string {
	t.Helper()
	const (
		initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
		initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	)
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = s.post(t, "", initialize, 200)
		s.post(t, ids[i], initialized, 202)
	}
	return ids
}

// post sends a message and returns the session id of the response.
func (s *site) post(t *testing.T, session, message string, status int) (opened string) {
	t.Helper()
	if session != "" {
		session = "Mcp-Session-Id: " + session + "\r\n"
	}
	fmt.Fprintf(s.conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\n%s\r\n%s", s.address, len(message), session, message)
	got, header, err := readHead(s.answers)
	if err != nil || got != status {
		t.Fatalf("%d, %v", got, err)
	}
	length := 0
	if _, err := fmt.Sscan(header["Content-Length"], &length); err != nil {
		t.Fatal(err)
	}
	if _, err := s.answers.Discard(length); err != nil {
		t.Fatal(err)
	}
	return header["Mcp-Session-Id"]
}

// listen opens the stream of a session.
func (s *site) listen(t *testing.T, session string) {
	t.Helper()
	conn := s.dial(t)
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", s.address, session)
	if got, _, err := readHead(bufio.NewReaderSize(conn, 512)); err != nil || got != 200 {
		t.Fatalf("%d, %v", got, err)
	}
}

// upgrade opens a WebSocket and waits for the response to a ping.
func (s *site) upgrade(t *testing.T) {
	t.Helper()
	conn := s.dial(t)
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n", s.address)
	answers := bufio.NewReaderSize(conn, 512)
	if got, _, err := readHead(answers); err != nil || got != 101 {
		t.Fatalf("%d, %v", got, err)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	// One text frame, masked with zeros (RFC 6455 section 5.2).
	frame := append([]byte{0x81, 0x80 | byte(len(ping)), 0, 0, 0, 0}, ping...)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	if answer, err := answers.Peek(2); err != nil || answer[0] != 0x81 {
		t.Fatalf("%x, %v", answer, err)
	}
}

// readHead reads the status and the headers of a response.
func readHead(r *bufio.Reader) (status int, header map[string]string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, nil, err
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		return 0, nil, err
	}
	header = map[string]string{}
	for {
		if line, err = r.ReadString('\n'); err != nil || line == "\r\n" {
			return status, header, err
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		header[name] = value
	}
}

// inUse returns the bytes of heap and stacks in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
