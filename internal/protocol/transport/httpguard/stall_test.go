package httpguard

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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

// onPipe serves one connection within the bubble of the test. ended waits for
// the server, once nobody uses the connection any more.
func onPipe(t *testing.T, handler http.Handler, state func(net.Conn, http.ConnState)) (client net.Conn, ended func()) {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1), addr: server.LocalAddr()}
	l.conns <- server
	s := &http.Server{Handler: handler, ConnState: state}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(Limit(l, Caps{}))
	}()
	return client, func() {
		close(l.conns)
		<-done
	}
}

// TestAClientThatNeverReadsItsAnswerIsDropped sends a request and reads
// nothing: the answer has no deadline of its own.
func TestAClientThatNeverReadsItsAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan time.Duration, 1)
		began := time.Now()
		client, ended := onPipe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) }),
			func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed <- time.Since(began)
				}
			})
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-closed; took != 30*time.Second {
			t.Errorf("it was dropped after %s, want %s", took, 30*time.Second)
		}
		ended()
		client.Close()
	})
}
