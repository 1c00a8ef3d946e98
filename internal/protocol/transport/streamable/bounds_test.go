package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestResponse_withoutRoom calls for a result that has no room, alone and after
// an event.
func TestResponse_withoutRoom(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		if r.Emit != nil {
			r.Emit.Progress(1, nil, "")
		}
		return mcptest.Text(strings.Repeat("x", 100_000))
	}
	s := newSite(t, streamable.Options{Bounds: httpstream.Bounds{Unread: httpguard.NewBudget(100_000)}}, tool)
	session := s.begin("2025-11-25")
	const lost = `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the response was dropped`
	r := s.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`, jsonType, session)
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.HasPrefix(string(text), lost) {
		t.Errorf("alone: %s %.200s: %v", r.Status, text, err)
	}
	r = s.do(t.Context(), "POST", progressing, jsonType, session)
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "data: "+lost) {
		t.Errorf("after an event: %s %.1000s: %v", r.Status, text, err)
	}
}

// TestCall_keepsBodyBudget disconnects a client while its call continues.
func TestCall_keepsBodyBudget(t *testing.T) {
	tool, goOn := progressTool()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	guard, err := httpguard.New(httpguard.Options{Bodies: 8 * int64(len(progressing)) / 6})
	if err != nil {
		t.Fatal(err)
	}
	ended, inside := make(chan struct{}), guard.Wrap(s.web.Config.Handler)
	s.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { ended <- struct{}{} })
		inside.ServeHTTP(w, r)
	})
	ctx, lose := context.WithCancel(t.Context())
	first, _ := reader(t, s.do(ctx, "POST", progressing, jsonType, session))()
	lose()
	<-ended
	if r := s.do(t.Context(), "POST", ping, jsonType, session); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("message beside the call: %s", r.Status)
	}
	<-ended
	close(goOn)
	events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+first.id))
	<-ended
	if r := s.do(t.Context(), "POST", ping, jsonType, session); r.StatusCode != http.StatusOK {
		t.Errorf("message after the call: %s", r.Status)
	}
	<-ended
}

// TestSession_separateStreams: the stream of the session carries no response
// and no notification of a call, a resumed stream replays only its own events,
// and all event ids are distinct.
func TestSession_separateStreams(t *testing.T) {
	tool, goOn := progressTool()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	own := reader(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session))
	primed, _ := own()

	ctx, lose := context.WithCancel(t.Context())
	calls := [2]func() (event, bool){}
	var all []event
	for i := range calls {
		text := strings.Replace(progressing, `"id":2`, `"id":`+string(rune('2'+i)), 1)
		calls[i] = reader(t, s.do(ctx, "POST", text, jsonType, session))
		for range 2 {
			e, _ := calls[i]()
			all = append(all, e)
		}
	}
	s.backend.Publish(mcptest.Tools()[:2]...)
	notified, _ := own()
	if !strings.Contains(notified.data, "tools/list_changed") {
		t.Fatalf("first event of the session's stream: %q", notified)
	}
	lose()
	close(goOn)
	for i := range calls {
		last := all[2*i+1]
		rest := events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+last.id))
		rest = withData(rest)
		if len(rest) != 2 || !strings.Contains(rest[0].data, `"progress":2`) || !strings.Contains(rest[1].data, `"id":`+string(rune('2'+i))) {
			t.Errorf("rest of call %d: %q", i, rest)
		}
		all = append(all, rest...)
	}
	s.backend.Publish(mcptest.Tools()[:3]...)
	if e, _ := own(); !strings.Contains(e.data, "tools/list_changed") {
		t.Errorf("event of the session's stream: %q", e)
	}
	known := map[string]bool{}
	for _, e := range append(all, primed, notified) {
		if e.id == "" || known[e.id] {
			t.Errorf("the id %q is a duplicate or empty", e.id)
		}
		known[e.id] = true
	}
	if r := s.do(t.Context(), http.MethodDelete, "", session); r.StatusCode != http.StatusNoContent {
		t.Errorf("end of the session: %s", r.Status)
	}
}

// withData omits the events without data.
func withData(all []event) (some []event) {
	for _, e := range all {
		if e.data != "" {
			some = append(some, e)
		}
	}
	return some
}

// BenchmarkIdleStreams reports the memory of a legacy session with its open
// stream and the connection in net/http.
func BenchmarkIdleStreams(b *testing.B) {
	const many = 1000
	for b.Loop() {
		s := mcp.New(instant{}, mcp.Options{})
		web := httptest.NewServer(streamable.New(s, streamable.Options{}))
		before := inUse()
		for range many {
			conn, err := net.Dial("tcp", web.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			listenOn(b, conn)
		}
		b.ReportMetric(float64(inUse()-before)/many, "B/session")
		web.CloseClientConnections()
		if err := s.Drain(context.Background()); err != nil {
			b.Error(err)
		}
		web.Close()
	}
}

var sessionHeader = regexp.MustCompile(`Mcp-Session-Id: (\S+)`)

// listenOn opens a session on a connection, and its stream.
func listenOn(b *testing.B, conn net.Conn) {
	b.Helper()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(initialize), initialize)
	id := sessionHeader.FindSubmatch(readSome(b, conn))
	if id == nil {
		b.Fatal("no session id")
	}
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", id[1])
	readSome(b, conn)
}

func readSome(b *testing.B, conn net.Conn) []byte {
	b.Helper()
	buffer := make([]byte, 4<<10)
	n, err := conn.Read(buffer)
	if err != nil && err != io.EOF {
		b.Fatal(err)
	}
	return buffer[:n]
}

// inUse returns the bytes of heap and stacks in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
