package gate

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

// TestAClientThatNeverReadsItsAnswerIsDropped sends a request and reads
// nothing: the answer has no deadline of its own.
func TestAClientThatNeverReadsItsAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		l := &oneConn{conns: make(chan net.Conn, 1), addr: server.LocalAddr()}
		l.conns <- server
		closed := make(chan time.Duration, 1)
		began := time.Now()
		s := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) }),
			ConnState: func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed <- time.Since(began)
				}
			},
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(Limit(l, Caps{})) }()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-closed; took != 30*time.Second {
			t.Errorf("it was dropped after %s, want %s", took, 30*time.Second)
		}
		close(l.conns)
		<-ended
		client.Close()
	})
}
