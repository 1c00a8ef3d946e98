package httpguard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve runs the guard in a real server that answers 418, or the error of
// reading the body.
func serve(t *testing.T, o Options, caps ConnLimits) *httptest.Server {
	t.Helper()
	s := newServer(t, o, caps)
	s.Start()
	return s
}

// newServer returns the server of serve before its start.
func newServer(t *testing.T, o Options, caps ConnLimits) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(newGate(t, o).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.WriteHeader(http.StatusRequestTimeout)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(passed)
		}
	})))
	ConfigureServer(s.Config)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Listener = LimitListener(s.Listener, caps)
	t.Cleanup(s.Close)
	return s
}

// raw sends text, with PORT replaced by the port of the server, and returns the
// status of the response.
func raw(t *testing.T, s *httptest.Server, text string) int {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	if _, err := io.WriteString(c, strings.ReplaceAll(strings.ReplaceAll(text, "PORT", port), "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func TestGuard_rawRequests(t *testing.T) {
	const post = "POST / HTTP/1.1\nHost: localhost:PORT\nContent-Type: application/json\n"
	rows := []struct {
		name string
		text string
		want int
	}{
		{"valid", "GET / HTTP/1.1\nHost: localhost:PORT\n\n", passed},
		{"rebound name", "GET / HTTP/1.1\nHost: evil.com:PORT\n\n", 403},
		{"no host", "GET / HTTP/1.0\n\n", 403},
		{"two hosts", "GET / HTTP/1.1\nHost: localhost:PORT\nHost: evil.com\n\n", 400},
		{"two hosts, valid one last", "GET / HTTP/1.1\nHost: evil.com\nHost: localhost:PORT\n\n", 400},
		{"target with own host", "GET http://localhost:PORT/ HTTP/1.1\nHost: localhost:PORT\n\n", passed},
		{"target with other host", "GET http://evil.com/ HTTP/1.1\nHost: localhost:PORT\n\n", 403},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\nHost: localhost:PORT\n\n", passed},
		{"OPTIONS * of other host", "OPTIONS * HTTP/1.1\nHost: evil.com\n\n", 403},
		{"CONNECT", "CONNECT evil.com:443 HTTP/1.1\nHost: evil.com:443\n\n", 403},
		{"preflight", "OPTIONS / HTTP/1.1\nHost: localhost:PORT\nOrigin: http://evil.com\nAccess-Control-Request-Method: POST\n\n", 403},
		{"two origins", "GET / HTTP/1.1\nHost: localhost:PORT\nOrigin: http://localhost:PORT\nOrigin: http://evil.com\n\n", 403},
		{"upgrade from other site", "GET /ws HTTP/1.1\nHost: localhost:PORT\nConnection: upgrade\nUpgrade: websocket\nOrigin: http://evil.com\n\n", 403},
		{"body", post + "Content-Length: 2\n\n{}", passed},
		{"too large Content-Length", post + "Content-Length: 101\n\n" + strings.Repeat("x", 101), 413},
		{"too large chunked body", post + "Transfer-Encoding: chunked\n\n66\n" + strings.Repeat("x", 102) + "\n0\n\n", 413},
		{"headers too large", "GET / HTTP/1.1\nHost: localhost:PORT\nA: " + strings.Repeat("x", 2*maxHeaderBytes) + "\n\n", 431},
	}
	s := serve(t, Options{MaxBody: 100}, ConnLimits{})
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := raw(t, s, r.text); got != r.want {
				t.Errorf("status %d, want %d", got, r.want)
			}
		})
	}
}

// TestGuard_chunkedBodyWithLength: what a proxy would take for a part of the
// body, because of its Content-Length, must not be a separate request.
func TestGuard_chunkedBodyWithLength(t *testing.T) {
	s := serve(t, Options{}, ConnLimits{})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	host := "Host: " + s.Listener.Addr().String() + "\r\n"
	smuggled := "GET /smuggled HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\n"+host+"Content-Type: application/json\r\nContent-Length: 60\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"+smuggled); err != nil {
		t.Fatal(err)
	}
	answers, _ := io.ReadAll(c) // a reset because of unread data is an end too
	if n := strings.Count(string(answers), "HTTP/1.1 "); n != 1 {
		t.Errorf("%d responses:\n%s", n, answers)
	}
}

func TestBodies_timeout(t *testing.T) {
	s := serve(t, Options{BodyTimeout: 10 * time.Millisecond}, ConnLimits{})
	got := raw(t, s, "POST / HTTP/1.1\nHost: localhost:PORT\nContent-Type: application/json\nContent-Length: 2\n\n{")
	if got != http.StatusRequestTimeout {
		t.Errorf("status %d", got)
	}
}

func TestBodies_rejectedTimeout(t *testing.T) {
	s := serve(t, Options{BodyTimeout: 10 * time.Millisecond}, ConnLimits{})
	got := raw(t, s, "POST / HTTP/1.1\nHost: evil.com\nContent-Type: application/json\nContent-Length: 2\n\n{")
	if got != http.StatusForbidden {
		t.Errorf("status %d", got)
	}
}

// The deadline of a body must not abort a longer response.
func TestBodies_slowResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan bool, 1)
		client, ended := onPipe(t, newGate(t, Options{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			select {
			case <-r.Context().Done():
				gone <- true
			case <-time.After(5 * DefaultBodyTimeout):
				gone <- false
			}
		})), nil)
		if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		if <-gone {
			t.Error("the request ended at the deadline of its body")
		}
		_ = client.Close()
		ended()
	})
}

// TestLimitListener_closesLongestIdle fills the limits with idle connections: a
// new connection is accepted, and the longest idle one is closed.
func TestLimitListener_closesLongestIdle(t *testing.T) {
	rows := []struct {
		name string
		caps ConnLimits
	}{
		{"total", ConnLimits{Total: 3, IdlePerClient: 100}},
		{"per client", ConnLimits{Total: 100, IdlePerClient: 3}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			// A client has its response before the connection counts as idle.
			s, idle := newServer(t, Options{}, r.caps), make(chan struct{}, 6)
			setState := s.Config.ConnState
			s.Config.ConnState = func(c net.Conn, state http.ConnState) {
				if setState(c, state); state == http.StateIdle {
					idle <- struct{}{}
				}
			}
			s.Start()
			var open []net.Conn
			for i := range 6 {
				open = append(open, dial(t, s))
				if !answers(open[i]) {
					t.Fatalf("connection %d is not served", i)
				}
				<-idle
			}
			for i, c := range open {
				if i < 3 && answers(c) {
					t.Errorf("connection %d is open over the limit", i)
				}
				_ = c.Close()
			}
		})
	}
}

// TestLimitListener_largestHolder has one address hold most connections, and
// another some older ones.
func TestLimitListener_largestHolder(t *testing.T) {
	l := LimitListener(nil, ConnLimits{Total: 64, IdlePerClient: 60}).(*limitListener)
	var few, many []*limitedConn
	for range 4 {
		few = append(few, l.admit(from(t, "10.0.0.1:1")))
	}
	for range 100 {
		many = append(many, l.admit(from(t, "10.0.0.2:1")))
	}
	for i, c := range few {
		if c.uncounted {
			t.Errorf("connection %d of the other address was closed", i)
		}
	}
	if !many[0].uncounted || many[99].uncounted || l.total != 64 {
		t.Errorf("%d connections are open", l.total)
	}
}

// exhausted is a listener of a process without free file descriptors.
type exhausted struct{ net.Listener }

func (exhausted) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestLimitListener_noDescriptors makes Accept fail: an idle connection is
// closed, and none in use.
func TestLimitListener_noDescriptors(t *testing.T) {
	l := LimitListener(exhausted{}, ConnLimits{}).(*limitListener)
	used, idle := l.admit(from(t, "10.0.0.1:1")), l.admit(from(t, "10.0.0.2:1"))
	used.startUse(at("10.0.0.1"))
	for range 2 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	if !idle.uncounted || used.uncounted {
		t.Errorf("idle connection closed: %v, used one: %v", idle.uncounted, used.uncounted)
	}
}

// TestLimitListener_inUse has one client use all connections that it gets.
func TestLimitListener_inUse(t *testing.T) {
	l := LimitListener(nil, ConnLimits{}).(*limitListener)
	var used []*limitedConn
	for range 2000 {
		c := l.admit(from(t, "10.0.0.1:1"))
		if c == nil {
			t.Fatal("a connection was rejected")
		}
		if c.startUse(at("10.0.0.1")) {
			used = append(used, c)
		}
	}
	if n := len(used); n < 1000 || n > 1500 {
		t.Errorf("one address uses %d connections", n)
	}
	for i := range 100 {
		c := l.admit(from(t, "10.0.0.1:1"))
		if c == nil || !c.startUse(principal("ann")) {
			t.Fatalf("connection %d of a principal behind that address is not served", i)
		}
	}
	for i := range 100 {
		c := l.admit(from(t, "10.0.0.2:1"))
		if c == nil || !c.startUse(at("10.0.0.2")) {
			t.Fatalf("connection %d of another address is not served", i)
		}
	}
	for _, c := range used[:300] {
		c.endUse()
	}
	if c := l.admit(from(t, "10.0.0.1:1")); !used[0].startUse(at("10.0.0.1")) || c == nil {
		t.Error("a connection is not served after the release of another")
	}
}

// TestLimitListener_principals has 4,000 addresses use two connections each.
func TestLimitListener_principals(t *testing.T) {
	l := LimitListener(nil, ConnLimits{}).(*limitListener)
	for i := range 4000 {
		address := fmt.Sprintf("10.0.%d.%d", i>>8, i&255)
		for range 2 {
			if c := l.admit(from(t, address+":1")); c != nil {
				c.startUse(at(address))
			}
		}
	}
	for i := range 10 {
		c := l.admit(from(t, "10.1.0.1:1"))
		if c == nil || !c.startUse(principal("ann")) {
			t.Fatalf("connection %d of a principal is not served", i)
		}
	}
}

func dial(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answers reports whether a request on a connection gets a response.
func answers(c net.Conn) bool {
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", c.RemoteAddr()); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == passed
}

func TestLimitListener_countsOnce(t *testing.T) {
	l := LimitListener(nil, ConnLimits{Total: 1}).(*limitListener)
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	c := l.admit(here)
	if !c.startUse(principal("ann")) || c.NetConn() != here || l.admit(here) != nil {
		t.Error("a connection over the limit was accepted")
	}
	_ = c.Close()
	_ = c.Close()
	if l.admit(here) == nil || l.total != 1 || l.inUse.used != 0 {
		t.Errorf("at the end the count is %d, and %d are in use", l.total, l.inUse.used)
	}
}

// from returns a connection from an address.
func from(t *testing.T, address string) net.Conn {
	t.Helper()
	if address == "" {
		return fakeConn{remote: &net.UnixAddr{}}
	}
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return fakeConn{remote: tcp}
}

type fakeConn struct {
	net.Conn
	remote net.Addr
}

func (c fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c fakeConn) Close() error         { return nil }

func TestCheckListen(t *testing.T) {
	rows := map[string]bool{
		"127.0.0.1:8080": true, "127.5.6.7:0": true, "localhost:8080": true, "LOCALHOST:1": true, "[::1]:8080": true, "[::ffff:127.0.0.1]:80": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "192.168.1.5:8080": false, "10.0.0.1:80": false, "mcp.internal:8080": false,
		"localhost.evil.com:80": false, "8.8.8.8:80": false, "[fe80::1%eth0]:80": false, "127.0.0.1.nip.io:80": false,
	}
	for address, want := range rows {
		if err := CheckListen(address, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		} else if err != nil && !strings.Contains(err.Error(), "--insecure-listen") {
			t.Errorf("the error does not name the flag: %v", err)
		}
		if err := CheckListen(address, true); err != nil {
			t.Errorf("%s with the flag: %v", address, err)
		}
	}
	for _, address := range []string{"", "8080", "127.0.0.1", "::1"} {
		if CheckListen(address, true) == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}
