package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// event is one server-sent event.
type event struct{ id, retry, data string }

// reader returns the events of a stream one by one, and false at its end. It
// skips comments.
func reader(t *testing.T, r *http.Response) func() (event, bool) {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("%s: the response is not a stream but %s", r.Status, kind)
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 4<<20)
	return func() (e event, ok bool) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "id":
				e.id = value
			case "retry":
				e.retry = value
			case "data":
				e.data = value
			case "":
				if e != (event{}) {
					return e, true
				}
			}
		}
		return e, false
	}
}

// events returns all events of a stream that ends.
func events(t *testing.T, r *http.Response) (all []event) {
	t.Helper()
	next := reader(t, r)
	for {
		e, ok := next()
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

// begin opens a session of a revision and returns its session header.
func (s *site) begin(version string) string {
	s.t.Helper()
	text := strings.Replace(initialize, "2025-11-25", version, 1)
	session := "Mcp-Session-Id: " + s.do(s.t.Context(), "POST", text, jsonType).Header.Get("Mcp-Session-Id")
	s.do(s.t.Context(), "POST", ready, jsonType, session)
	return session
}

const progressing = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":1}}}`

// progressTool returns a tool that reports progress before and after goOn is closed.
func progressTool() (tool mcptest.Tool, goOn chan struct{}) {
	goOn = make(chan struct{})
	tool = mcptest.Tools()[0]
	tool.Run = func(ctx context.Context, r call.Request) call.Result {
		r.Emit.Progress(1, nil, "")
		<-goOn
		r.Emit.Progress(2, nil, "")
		return mcptest.Text("done")
	}
	return tool, goOn
}

func TestResume(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			tool, goOn := progressTool()
			s := newSite(t, streamable.Options{}, tool)
			session := s.begin(version)
			ctx, lose := context.WithCancel(t.Context())
			next := reader(t, s.do(ctx, "POST", progressing, jsonType, session))
			if version == "2025-11-25" {
				if e, _ := next(); e.data != "" || e.retry != "1000" || !strings.HasSuffix(e.id, "_0") {
					t.Errorf("first event: %q", e)
				}
			}
			first, _ := next()
			if !strings.Contains(first.data, `"progress":1`) || !strings.HasSuffix(first.id, "_1") {
				t.Fatalf("first event: %q", first)
			}
			lose()
			close(goOn)
			got := events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+first.id))
			got = slices.DeleteFunc(got, func(e event) bool { return e.data == "" })
			if len(got) != 2 || !strings.Contains(got[0].data, `"progress":2`) || !strings.Contains(got[1].data, "done") {
				t.Fatalf("rest of the stream: %q", got)
			}
			again := events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+got[0].id))
			if len(again) == 0 || again[len(again)-1] != got[1] {
				t.Errorf("repeated last event: %q", again)
			}
		})
	}
}

func TestResume_timeout(t *testing.T) {
	tool, running, ended := waitingTool()
	s := newSite(t, streamable.Options{ResumeTimeout: time.Millisecond}, tool)
	session := s.begin("2025-11-25")
	ctx, lose := context.WithCancel(t.Context())
	next := reader(t, s.do(ctx, "POST", progressing, jsonType, session))
	<-running
	next()
	lose()
	if err := <-ended; err == nil {
		t.Error("the call was not cancelled")
	}
}

func TestResume_unsupported(t *testing.T) {
	tool, running, ended := waitingTool()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	ctx, lose := context.WithCancel(t.Context())
	go func() {
		<-running
		lose()
	}()
	r, err := http.NewRequestWithContext(ctx, "POST", s.web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	name, value, _ := strings.Cut(session, ": ")
	r.Header.Set(name, value)
	if _, err := s.web.Client().Do(r); err == nil {
		t.Error("the call got a response")
	}
	if err := <-ended; err == nil {
		t.Error("the call was not cancelled")
	}
}

// closingTool returns a tool that closes its stream, and then continues.
func closingTool() (tool mcptest.Tool, goOn chan struct{}) {
	goOn = make(chan struct{})
	tool = mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		if r.Emit != nil {
			r.Emit.CloseStream()
		}
		<-goOn
		return mcptest.Text("done")
	}
	return tool, goOn
}

func TestCloseStream(t *testing.T) {
	tool, goOn := closingTool()
	s := newSite(t, streamable.Options{}, tool)
	session := s.begin("2025-11-25")
	const text = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`
	got := events(t, s.do(t.Context(), "POST", text, jsonType, session))
	if len(got) != 1 || got[0].data != "" || got[0].retry == "" {
		t.Fatalf("stream: %q", got)
	}
	next := reader(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+got[0].id))
	close(goOn)
	for {
		e, ok := next()
		if !ok {
			t.Fatal("the stream ended without the response")
		}
		if strings.Contains(e.data, "done") {
			return
		}
	}
}

// The call still runs when the server closes the connection. Clients must see a
// complete response, not a lost connection.
func TestCloseStream_completeBody(t *testing.T) {
	tool, goOn := closingTool()
	defer close(goOn)
	s := newSite(t, streamable.Options{}, tool)
	response := s.do(t.Context(), "POST", progressing, jsonType, s.begin("2025-11-25"))
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "retry: ") {
		t.Errorf("response %q: %v", text, err)
	}
}

// A call without a connection must not keep the connection from closing.
func TestResume_closesConnection(t *testing.T) {
	tool, goOn := progressTool()
	defer close(goOn)
	s := newSite(t, streamable.Options{}, tool)
	hijacked := make(chan struct{})
	web := httptest.NewUnstartedServer(s.web.Config.Handler)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateHijacked {
			close(hijacked)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	s.web = web
	ctx, lose := context.WithCancel(t.Context())
	reader(t, s.do(ctx, "POST", progressing, jsonType, s.begin("2025-11-25")))()
	lose()
	<-hijacked
}

func TestResume_http2(t *testing.T) {
	tool, goOn := progressTool()
	s := newSite(t, streamable.Options{}, tool)
	web := httptest.NewUnstartedServer(s.web.Config.Handler)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	s.web = web
	session := s.begin("2025-11-25")
	ctx, lose := context.WithCancel(t.Context())
	response := s.do(ctx, "POST", progressing, jsonType, session)
	next := reader(t, response)
	next()
	first, _ := next()
	if response.ProtoMajor != 2 || !strings.Contains(first.data, `"progress":1`) {
		t.Fatalf("%s event %q", response.Proto, first)
	}
	lose()
	close(goOn)
	got := events(t, s.do(t.Context(), "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+first.id))
	if len(got) == 0 || !strings.Contains(got[len(got)-1].data, "done") {
		t.Errorf("rest of the stream: %q", got)
	}
}

func TestCloseStream_unsupported(t *testing.T) {
	text, header := callText("hello")
	for _, test := range []struct {
		name, text string
		header     func(s *site) []string
	}{
		{"modern client", text, func(*site) []string { return header }},
		{"older client", progressing, func(s *site) []string { return []string{jsonType, s.begin("2025-06-18")} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool, goOn := closingTool()
			close(goOn)
			s := newSite(t, streamable.Options{}, tool)
			if got := read(t, s.do(t.Context(), "POST", test.text, test.header(s)...)); !strings.Contains(got, "done") {
				t.Errorf("response: %s", got)
			}
		})
	}
}

func TestResume_otherSession(t *testing.T) {
	tool, goOn := progressTool()
	close(goOn)
	s := newSite(t, streamable.Options{}, tool)
	mine, other := s.begin("2025-11-25"), s.begin("2025-11-25")
	got := events(t, s.do(t.Context(), "POST", progressing, jsonType, mine))
	last := got[1].id
	for _, test := range []struct {
		name, session, id string
		want              int
	}{
		{"own event", mine, last, 200},
		{"event of another session", other, last, 400},
		{"unknown event", mine, strings.TrimSuffix(last, "1") + "99", 400},
		{"negative number", mine, strings.TrimSuffix(last, "1") + "-1", 400},
		{"unknown stream", mine, "pAAAA_1", 400},
		{"nonsense", mine, "nonsense", 400},
	} {
		response := s.do(t.Context(), "GET", "", "Accept: text/event-stream", test.session, "Last-Event-ID: "+test.id)
		if response.StatusCode != test.want {
			t.Errorf("%s: status %s, want %d", test.name, response.Status, test.want)
		}
	}
	s.do(t.Context(), "DELETE", "", mine)
	if r := s.do(t.Context(), "GET", "", "Accept: text/event-stream", mine, "Last-Event-ID: "+last); r.StatusCode != 404 {
		t.Errorf("after the session: status %s", r.Status)
	}
}

func TestResume_sessionStream(t *testing.T) {
	s := newSite(t, streamable.Options{})
	session := s.begin("2025-11-25")
	ctx, lose := context.WithCancel(t.Context())
	next := reader(t, s.do(ctx, "GET", "", "Accept: text/event-stream", session))
	next()
	s.backend.Publish(mcptest.Tools()[:1]...)
	notified, _ := next()
	s.backend.PublishItems(mcptest.Items()[:1]...)
	if e, _ := next(); !strings.Contains(e.data, "resources/list_changed") {
		t.Fatalf("event: %q", e)
	}
	lose()
	for _, last := range []string{notified.id, "gUNKNOWN_7"} {
		ctx, lose := context.WithCancel(t.Context())
		next := reader(t, s.do(ctx, "GET", "", "Accept: text/event-stream", session, "Last-Event-ID: "+last))
		if e, _ := next(); e.data != "" || e.retry == "" {
			t.Errorf("first event after %s: %q", last, e)
		}
		if last == notified.id {
			if e, _ := next(); !strings.Contains(e.data, "resources/list_changed") {
				t.Errorf("missed event: %q", e)
			}
		}
		s.backend.Publish(mcptest.Tools()[:len(last)%5+2]...)
		for !strings.Contains(func() string { e, _ := next(); return e.data }(), "tools/list_changed") {
			continue
		}
		lose()
	}
}

func TestResume_longResponse(t *testing.T) {
	tool := mcptest.Tools()[0]
	tool.Run = func(_ context.Context, r call.Request) call.Result {
		for i := range 100 {
			r.Emit.Progress(float64(i), nil, strings.Repeat("x", 20<<10))
		}
		return mcptest.Text(strings.Repeat("y", 2<<20))
	}
	s := newSite(t, streamable.Options{}, tool)
	got := events(t, s.do(t.Context(), "POST", progressing, jsonType, s.begin("2025-11-25")))
	if last := got[len(got)-1].data; len(last) < 2<<20 {
		t.Errorf("the last of %d events has %d bytes: %s", len(got), len(last), fmt.Sprintf("%.100s", last))
	}
}
