package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// cannedResponse is a response: body is sent at once, and then nothing until the client has disconnected.
// ID is replaced by the id of the request.
type cannedResponse struct {
	status     int
	kind, body string
	ends       bool // after the body
}

// methodServer is a server that answers requests by method, and otherwise like asker. Requests that
// resume a stream have the method "".
type methodServer struct {
	asker
	says map[string]cannedResponse
	open atomic.Int32 // bodies that are not closed

	saying sync.Mutex
	last   string // id of a call
	made   int
}

func (s *methodServer) RoundTrip(r *http.Request) (*http.Response, error) {
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	answer, known := s.says[m.method]
	if !known || r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "" || r.Method == http.MethodDelete {
		return s.asker.RoundTrip(r)
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	if r.Method == http.MethodPost {
		s.last = string(m.id)
	}
	s.made++
	s.open.Add(1)
	text := strings.NewReplacer("ID", s.last, "NEW", fmt.Sprint(s.made)).Replace(answer.body)
	body := &blockingStream{Reader: strings.NewReader(text), ctx: r.Context(), open: &s.open, ends: answer.ends}
	return given(r, answer.status, answer.kind, body), nil
}

// blockingStream is a body that blocks after its content, unless ends is set.
type blockingStream struct {
	io.Reader
	ctx  context.Context
	open *atomic.Int32
	ends bool
}

func (h *blockingStream) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err == nil || h.ends {
		return n, err
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (h *blockingStream) Close() error {
	h.open.Add(-1)
	return nil
}

// reached connects to a server with all permissions that sends requests on its own stream.
func (a *asker) reached(t *testing.T, transport, asks string, trip http.RoundTripper) (l *Conn, end func()) {
	t.Helper()
	silence, quiet := io.Pipe()
	a.asks = io.MultiReader(strings.NewReader(asks), silence)
	l, err := Dial(t.Context(), Target{Name: "teller", URL: "http://teller.test/mcp", Transport: transport, Input: InputPolicy{Elicit: true, Sample: true, Roots: true}}, playedBy(trip))
	if err != nil {
		t.Fatal(err)
	}
	return l, func() {
		_ = quiet.Close()
		_ = l.Close()
	}
}

const (
	streamed = "text/event-stream"
	ended    = `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`
)

func TestServerRequest_afterResponse(t *testing.T) {
	for _, request := range demands {
		asked := `data: {"jsonrpc":"2.0","id":"n NEW",` + request + "}\n\n"
		for name, says := range map[string]map[string]cannedResponse{
			"the stream of a call":     {MethodTool: {200, streamed, "data: " + ended + "\n\n" + asked, false}},
			"one that is gone on with": {MethodTool: {200, streamed, "id: 7\ndata:\n\n", true}, "": {200, streamed, "data: " + ended + "\n\n" + asked, false}},
			"that of a subscription":   {"resources/subscribe": {200, streamed, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n" + asked, false}},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := &methodServer{says: says}
				l, end := s.reached(t, TransportStreamable, "", s)
				for n := range 2 * maxServerRequests {
					if says[MethodTool].status == 0 {
						if err := l.subscribe(t.Context(), "lab://note"); err != nil {
							t.Fatalf("%s: subscription %d fails", name, n)
						}
					} else if reply, err := l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil).Next(t.Context()); err != nil || reply.Result == nil {
						t.Fatalf("%s: call %d ends with %v", name, n, err)
					}
				}
				synctest.Wait()
				_, _, answers := s.state()
				if s.open.Load() != 0 || len(l.filter.requests) != 0 || len(l.filter.slots) != 0 || len(answers) != 0 || l.Err() != nil {
					t.Errorf("%s, %s: %d bodies are open, %d requests known, %d owed and %d answered: %v", name, request, s.open.Load(), len(l.filter.requests), len(l.filter.slots), len(answers), l.Err())
				}
				end()
			})
		}
	}
}

func TestServerRequest_waitingForSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked strings.Builder
		for n := range 2 * maxServerRequests {
			fmt.Fprintf(&asked, "data: {\"jsonrpc\":\"2.0\",\"id\":\"%d of NEW\",\"method\":\"ping\"}\n\n", n)
		}
		s := &methodServer{asker: asker{deaf: true}, says: map[string]cannedResponse{MethodTool: {200, streamed, asked.String(), false}}}
		l, end := s.reached(t, TransportStreamable, "", s)
		for range 3 {
			c := l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil)
			synctest.Wait()
			if s.open.Load() != 1 || len(l.filter.requests) != 1 || len(l.filter.slots) != maxServerRequests {
				t.Errorf("%d open bodies, %d requests, %d slots", s.open.Load(), len(l.filter.requests), len(l.filter.slots))
			}
			c.Cancel(errors.New("enough"))
			synctest.Wait()
			if s.open.Load() != 0 || len(l.filter.requests) != 0 || len(l.filter.slots) != maxServerRequests {
				t.Errorf("behind the call %d bodies are open, %d requests known and %d owed", s.open.Load(), len(l.filter.requests), len(l.filter.slots))
			}
		}
		end()
	})
}

func TestServerRequest_ignoredStream(t *testing.T) {
	for _, request := range demands {
		asked := `{"jsonrpc":"2.0","id":"n NEW",` + request + `}`
		const data = "data: {\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"ping\"}\n\n"
		for name, row := range map[string]struct {
			method string // "" for answers
			said   cannedResponse
		}{
			"in the answer to a notification":        {"notifications/initialized", cannedResponse{200, "application/json", asked, true}},
			"in the answer to an answer":             {"", cannedResponse{202, "application/json", asked, true}},
			"on a stream that answers an answer":     {"", cannedResponse{200, streamed, "data: " + asked + "\n\n", false}},
			"with a status of failure":               {MethodTool, cannedResponse{400, "application/json", asked, true}},
			"in an answer that is no JSON":           {MethodTool, cannedResponse{200, "text/plain", asked, true}},
			"with that of a host that is overloaded": {MethodTool, cannedResponse{503, "application/json", asked, true}},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := &methodServer{says: map[string]cannedResponse{row.method: row.said}}
				first := data
				if row.method == MethodTool {
					first = ""
				}
				l, end := s.reached(t, TransportStreamable, first, s)
				if row.method == MethodTool {
					if reply, err := l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil).Next(t.Context()); err == nil {
						t.Errorf("%s: the call ends with %+v", name, reply)
					}
				}
				synctest.Wait()
				if s.made != 1 || s.open.Load() != 0 || len(l.filter.requests) != 0 || len(l.filter.slots) != 0 {
					t.Errorf("%s, %s: it is asked %d times, %d bodies are open, %d requests known and %d owed", name, request, s.made, s.open.Load(), len(l.filter.requests), len(l.filter.slots))
				}
				end()
			})
		}
	}
}

func TestServerRequest_inInvalidResponse(t *testing.T) {
	for _, request := range demands {
		w, c := running()
		for _, of := range []*Call{c, nil} {
			on := &stream{call: of, answers: int64(1), ignored: true}
			seen, err := w.incoming([]byte(`{"jsonrpc":"2.0","id":"a",`+request+`}`), on)
			if seen != nil || err != nil || len(w.requests) != 0 || len(w.slots) != 0 {
				t.Errorf("%s: the client library sees %q, %v; %d requests", request, seen, err, len(w.requests))
			}
		}
	}
}

// blunt is an HTTP+SSE server that writes unexpected text into a body.
type blunt struct {
	older
	body string
	kind string
	made atomic.Int32
}

func (b *blunt) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.older.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		text := strings.ReplaceAll(b.body, "NEW", fmt.Sprint(b.made.Add(1)))
		resp.Header.Set("Content-Type", b.kind)
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	return resp, err
}

func TestFilterTransport_legacyPostBody(t *testing.T) {
	for _, row := range [][2]string{{"text/plain", "Accepted"}, {"application/json", `{"jsonrpc":"2.0","id":"n NEW","method":"ping"}`}} {
		synctest.Test(t, func(t *testing.T) {
			b := &blunt{kind: row[0], body: row[1]}
			b.stream, b.to = io.Pipe()
			l, end := b.reached(t, TransportSSE, "", b)
			reply, err := l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil).Next(t.Context())
			if err != nil || reply.Error == nil {
				t.Errorf("the call ends with %+v, %v", reply, err)
			}
			synctest.Wait()
			if b.made.Load() < 3 || len(l.filter.requests) != 0 || len(l.filter.slots) != 0 || l.Err() != nil {
				t.Errorf("%s: of %d bodies, %d requests are known and %d owed: %v", row[0], b.made.Load(), len(l.filter.requests), len(l.filter.slots), l.Err())
			}
			_ = b.to.Close()
			end()
		})
	}
}

func TestFilterTransport_errorStatus(t *testing.T) {
	changed := 0
	for _, text := range []string{
		`"id":1,"result":{"content":[]}`, `"id":"a","method":"ping"`, `"method":"notifications/tools/list_changed"`, `"error":{"code":1,"message":"no id"}`,
	} {
		w, c := running()
		w.changed = func(string, string) { changed++ }
		if seen, err := w.errorResponse([]byte(`{"jsonrpc":"2.0",` + text + `}`)); seen != nil || !errors.Is(err, errNotJSONRPC) || c.answered() || changed > 0 || len(w.requests) > 0 {
			t.Errorf("of %s the client library sees %q, %v", text, seen, err)
		}
	}
	for _, id := range []string{"1", "null"} {
		w, c := running()
		text := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"no"}}`
		if seen, err := w.errorResponse([]byte(text)); string(seen) != text || err != nil || c.answered() != (id == "1") {
			t.Errorf("of an error it sees %q, %v", seen, err)
		}
	}
}
