package httpstream

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// TestFinish_stopsKeepAlive checks for a timer that would keep the response in
// memory.
func TestFinish_stopsKeepAlive(t *testing.T) {
	a := NewResponse(httptest.NewRecorder(), Options{Bounds: Bounds{WriteTimeout: time.Hour, KeepAlive: time.Hour}}, func() {})
	a.Start()
	a.Finish(mcp.Refuse(mcp.Malformed, "the end"))
	if a.timer.Stop() {
		t.Error("the keep-alive timer is active")
	}
}

// TestResponse_withoutRoom has another response use the budget.
func TestResponse_withoutRoom(t *testing.T) {
	room := httpguard.NewBudget(16_000)
	large := mcp.Refuse(mcp.Served, strings.Repeat("x", 6000))
	answer := func() int {
		w := httptest.NewRecorder()
		NewResponse(w, Options{Bounds: Bounds{WriteTimeout: time.Hour, Unread: room, Logger: slog.New(slog.DiscardHandler)}}, func() {}).Finish(large)
		return w.Code
	}
	other := room.Hold(workqueue.Client{}, nil)
	other.Take(6000)
	if got := answer(); got != http.StatusServiceUnavailable {
		t.Errorf("without room: status %d", got)
	}
	other.ReleaseAll()
	for range 3 {
		if got := answer(); got != http.StatusOK {
			t.Errorf("with room: status %d", got)
		}
	}
}

// slowWriter is a writer with a client that does not read.
type slowWriter struct {
	http.ResponseWriter
	conn net.Conn
}

func (d slowWriter) Unwrap() http.ResponseWriter { return lost(d) }

type lost struct {
	http.ResponseWriter
	conn net.Conn
}

func (lost) FlushError() error { return errors.New("the client does not read") }

// Response does not use the bufio.ReadWriter.
func (l lost) Hijack() (net.Conn, *bufio.ReadWriter, error) { return l.conn, nil, nil }

func answers() Options {
	return Options{Bounds: Bounds{WriteTimeout: time.Hour, KeepAlive: time.Hour, Logger: slog.New(slog.DiscardHandler)}}
}

// TestDetached_closesConnection: the connection must not stay open until the
// handler ends, because it counts.
func TestDetached_closesConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	a := NewResponse(slowWriter{httptest.NewRecorder(), ours}, answers(), func() {})
	a.Detached(httptest.NewRequest(http.MethodPost, "/", nil)).Finish(mcp.Refuse(mcp.Served, "too late"))
	if err := ours.SetDeadline(time.Now().Add(time.Hour)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
	theirs.Close()
}

// TestHangUp_slowClient: the last bytes of a stream must not wait for a client
// that does not read them, because the handler waits for HangUp.
func TestHangUp_slowClient(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	o := answers()
	o.WriteTimeout = time.Millisecond
	r := NewResponse(bufferedWriter{httptest.NewRecorder(), ours}, o, func() {})
	r.Start()
	r.Finish(mcp.Reply{})
	r.HangUp(httptest.NewRequest(http.MethodPost, "/", nil))
	if err := ours.SetDeadline(time.Now().Add(time.Hour)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}

// bufferedWriter is a writer whose connection buffers the stream, but no more.
type bufferedWriter struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (b bufferedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return b.conn, nil, nil }

// TestDetached_supported: if the connection cannot be closed, the client would
// wait for the handler anyway.
func TestDetached_supported(t *testing.T) {
	first, second := httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRequest(http.MethodPost, "/", nil)
	second.ProtoMajor = 2
	for name, test := range map[string]struct {
		w    http.ResponseWriter
		r    *http.Request
		late bool
	}{
		"HTTP/1.1":                 {slowWriter{}, first, true},
		"HTTP/2":                   {slowWriter{}, second, false},
		"writer without hijacking": {httptest.NewRecorder(), first, false},
		"wrapper without Unwrap":   {struct{ http.ResponseWriter }{slowWriter{}}, first, false},
	} {
		if late := NewResponse(test.w, answers(), func() {}).Detached(test.r); (late != nil) != test.late {
			t.Errorf("%s: detached response: %v", name, late)
		}
	}
}

// TestDetached_releasesBody: the handler is still running.
func TestDetached_releasesBody(t *testing.T) {
	const room = 1600
	g, err := httpguard.New(httpguard.Options{Bodies: room})
	if err != nil {
		t.Fatal(err)
	}
	served := false
	handler := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if g.Bodies().Hold(workqueue.Client{}, nil).Take(room / 2) {
			t.Error("the body holds no budget")
		}
		NewResponse(slowWriter{httptest.NewRecorder(), ours}, answers(), func() {}).Detached(r).Finish(mcp.Refuse(mcp.Served, "too late"))
		if !g.Bodies().Hold(workqueue.Client{}, nil).Take(room / 2) {
			t.Error("the body still holds budget")
		}
		served = true
	}))
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(strings.Repeat("a text", room/12)))
	r.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if !served {
		t.Error("the guard rejected the request")
	}
}
