package httpguard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinger_clientThatWritesFirst sends a rejected body and reads only
// afterwards: the client gets the response, not a connection reset.
func TestLinger_clientThatWritesFirst(t *testing.T) {
	s := serve(t, Options{}, ConnLimits{})
	body := strings.Repeat(" ", 5_000_000)
	const chunk = 100_000
	for name, sent := range map[string]struct {
		headers, body string
		want          int
	}{
		"too long":          {fmt.Sprintf("Content-Length: %d\r\n", len(body)), body, http.StatusRequestEntityTooLarge},
		"too long, chunked": {"Transfer-Encoding: chunked\r\n", strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", chunk, body[:chunk]), len(body)/chunk) + "0\r\n\r\n", http.StatusRequestEntityTooLarge},
		"other site":        {fmt.Sprintf("Origin: http://evil.com\r\nContent-Length: %d\r\n", len(body)), body, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			defer func() { _ = c.Close() }()
			head := "POST / HTTP/1.1\r\nHost: " + s.Listener.Addr().String() + "\r\nContent-Type: application/json\r\n" + sent.headers + "\r\n"
			for _, text := range []string{head, sent.body} {
				if n, err := io.WriteString(c, text); err != nil {
					t.Fatalf("after %d bytes: %v", n, err)
				}
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != sent.want || !answer.Close {
				t.Errorf("status %d, want %d; connection closes: %v", answer.StatusCode, sent.want, answer.Close)
			}
		})
	}
}

// pipeBody opens an in-memory connection in the bubble of the test and sends
// the header of a request with a body of length bytes. answer receives the
// status, or 0 for none.
func pipeBody(t *testing.T, length int) (body net.Conn, answer chan int, ended func()) {
	t.Helper()
	client, ended := onPipe(t, newGate(t, Options{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		w.WriteHeader(passed)
	})), nil)
	if _, err := fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
	answer = make(chan int, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			answer <- 0
			return
		}
		answer <- resp.StatusCode
	}()
	return client, answer, ended
}

// TestBodies_minimumRate sends bodies of 100 KiB at a steady rate, and one that
// starts fast and then slows down.
func TestBodies_minimumRate(t *testing.T) {
	const length = 100 << 10
	for _, row := range []struct {
		name        string
		first, each int // bytes at once, and then per second
		want        int
	}{
		{"8 KiB/s", 0, 8 << 10, passed},
		{"1 KiB/s", 0, 1 << 10, http.StatusRequestTimeout},
		{"fast, then 100 bytes/s", length - 2000, 100, http.StatusRequestTimeout},
		{"nothing", 0, 0, http.StatusRequestTimeout},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				body, answer, ended := pipeBody(t, length)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = io.WriteString(body, strings.Repeat(" ", row.first))
					for left := length - row.first; left > 0; left -= row.each {
						time.Sleep(time.Second)
						if _, err := io.WriteString(body, strings.Repeat(" ", min(row.each, left))); err != nil || row.each == 0 {
							return
						}
					}
				}()
				if got := <-answer; got != row.want {
					t.Errorf("status %d, want %d", got, row.want)
				}
				if took := time.Since(started); row.want != passed && took > 12*time.Second {
					t.Errorf("it took %s", took)
				}
				_ = body.Close()
				<-sent
				ended()
			})
		})
	}
}

// oneConn is a listener of one connection.
type oneConn struct {
	conns chan net.Conn
	addr  net.Addr
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.addr }

// onPipe serves one connection in the bubble of the test. ended waits for the
// server, after the connection is no longer used.
func onPipe(t *testing.T, handler http.Handler, state func(net.Conn, http.ConnState)) (client net.Conn, ended func()) {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1), addr: server.LocalAddr()}
	l.conns <- server
	s := &http.Server{Handler: handler, ConnState: state}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(LimitListener(l, ConnLimits{}))
	}()
	return client, func() {
		close(l.conns)
		<-done
	}
}

// TestLimitListener_writeTimeout sends a request and never reads: the response
// has no deadline.
func TestLimitListener_writeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan time.Duration, 1)
		started := time.Now()
		client, ended := onPipe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) }),
			func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed <- time.Since(started)
				}
			})
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-closed; took != 30*time.Second {
			t.Errorf("disconnected after %s, want %s", took, 30*time.Second)
		}
		ended()
		client.Close()
	})
}
