package replica

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
)

// lab is a process that forwards requests to owners.
type lab struct {
	*testing.T
	forwarder *Forwarder
	url       string
	draining  chan struct{}
	outcomes  chan string
	// here counts the requests that the process answered itself, with their last body.
	here     atomic.Int64
	lastBody atomic.Pointer[string]

	mu       sync.Mutex
	replicas map[string]string // addresses by process
	err      error
	reads    int
}

func newLab(t *testing.T, secrets ...string) *lab {
	l := &lab{T: t, draining: make(chan struct{}), outcomes: make(chan string, 100), replicas: map[string]string{}}
	l.forwarder = NewForwarder(Options{
		Keys: keys(t, secrets...), Process: "me", Replicas: l.list, MaxMessage: 1 << 20, Draining: l.draining,
		Count: func(outcome string) { l.outcomes <- outcome }, Log: slog.New(slog.DiscardHandler),
	})
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		l.here.Add(1)
		l.lastBody.Store(&text)
		w.WriteHeader(http.StatusNotFound)
	})
	s := httptest.NewServer(l.forwarder.Wrap("/mcp", "", next, func(r *http.Request) string { return r.Header.Get("Mcp-Session-Id") }))
	l.url = s.URL
	t.Cleanup(func() {
		s.Close()
		l.forwarder.Close()
	})
	return l
}

func (l *lab) list() (all []state.Replica, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	for process, address := range l.replicas {
		all = append(all, state.Replica{ID: process, Info: &state.ReplicaInfo{Endpoint: state.Endpoint{Process: process, Address: address}}})
	}
	return append(all, state.Replica{ID: "without info"}), l.err
}

// set changes what the process reads about the fleet.
func (l *lab) set(process, address string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if address == "" {
		delete(l.replicas, process)
	} else {
		l.replicas[process] = address
	}
}

// serve starts an owner with a handler.
func (l *lab) serve(process string, k *Keys, h http.HandlerFunc) {
	l.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = k.ServerTLS()
	s.StartTLS()
	l.Cleanup(s.Close)
	l.set(process, s.Listener.Addr().String(), nil)
}

func (l *lab) request(ctx context.Context, method, process, body string) *http.Request {
	l.Helper()
	r, err := http.NewRequestWithContext(ctx, method, l.url+"/mcp?token=1", strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", sealed(l.T, keys(l.T, secret), process, identity.Anonymous()))
	return r
}

// send sends a request, and returns the status.
func (l *lab) send(r *http.Request) (status int, body string, header http.Header) {
	l.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		l.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

func (l *lab) want(method, process string, status int, outcome string) (header http.Header) {
	l.Helper()
	got, body, header := l.send(l.request(l.Context(), method, process, "{}"))
	if counted := <-l.outcomes; got != status || counted != outcome {
		l.Errorf("%s of %s: %d %s, counted as %s; want %d, %s", method, process, got, body, counted, status, outcome)
	}
	return header
}

func TestForwarder_request(t *testing.T) {
	l := newLab(t, secret)
	got := make(chan *http.Request, 1)
	l.serve("owner", keys(t, secret), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
		w.Header().Set("Mcp-Session-Id", "its answer")
		w.WriteHeader(http.StatusAccepted)
	})
	r := l.request(t.Context(), "POST", "owner", `{"a":1}`)
	for name, value := range map[string]string{
		"Authorization": "Bearer x", "X-Api-Key": "y", "Last-Event-Id": "z", HeaderEvidence: `{"remote":"192.0.2.1:1"}`, "Connection": HeaderEvidence + ", Upgrade", "Upgrade": "h2c",
		"Idempotency-Key": "k", "X-Idempotency-Key": "k", "Expect": "100-continue", "X-Forwarded-For": "192.0.2.1", "Transfer-Encoding": "chunked", "Te": "trailers",
	} {
		r.Header.Set(name, value)
	}
	status, _, header := l.send(r)
	if outcome := <-l.outcomes; status != 202 || header.Get("Mcp-Session-Id") != "its answer" || outcome != observe.ForwardedServed {
		t.Errorf("status %d, header %v, outcome %s", status, header, outcome)
	}
	sent := <-got
	body, _ := io.ReadAll(sent.Body)
	if sent.URL.String() != "/mcp" || string(body) != `{"a":1}` || sent.ContentLength != 7 || len(sent.TransferEncoding) > 0 {
		t.Errorf("%s with %d bytes: %s", sent.URL, sent.ContentLength, body)
	}
	if h := sent.Header; h.Get("Authorization") != "Bearer x" || h.Get("X-Api-Key") != "y" || h.Get("Last-Event-Id") != "z" {
		t.Errorf("header %v", h)
	}
	if e := sent.Header[HeaderEvidence]; len(e) != 1 || !strings.HasPrefix(e[0], `{"remote":"127.0.0.1:`) {
		t.Errorf("evidence %q", e)
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Expect", "Upgrade", "Connection", "Te", "X-Forwarded-For"} {
		if values := sent.Header[name]; values != nil {
			t.Errorf("%s: %q", name, values)
		}
	}
}

func TestForwarder_notForwarded(t *testing.T) {
	l := newLab(t, secret)
	l.serve("owner", keys(t, secret), func(http.ResponseWriter, *http.Request) { t.Error("a request was forwarded") })
	for name, id := range map[string]string{
		"no id": "", "a foreign id": "x", "its own": sealed(t, keys(t, secret), "me", identity.Anonymous()), "another fleet's": sealed(t, keys(t, other), "owner", identity.Anonymous()),
	} {
		r := l.request(t.Context(), "POST", "owner", "{}")
		r.Header.Set("Mcp-Session-Id", id)
		if status, _, _ := l.send(r); status != 404 || len(l.outcomes) > 0 {
			t.Errorf("%s: %d, %d counted", name, status, len(l.outcomes))
		}
	}
	r := l.request(t.Context(), "POST", "owner", "{}")
	r.Header.Set("Mcp-Session-Id", sealed(t, keys(t, secret), "owner", identity.Principal{ID: "ann"}))
	if status, _, _ := l.send(r); status != 404 || <-l.outcomes != observe.ForwardedRejected {
		t.Errorf("another principal's: %d", status)
	}
	if got := l.here.Load(); got != 5 {
		t.Errorf("%d requests were answered here", got)
	}
}

func TestForwarder_ownerGone(t *testing.T) {
	l := newLab(t, secret)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.set("refuses", listener.Addr().String(), nil)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	called := func(http.ResponseWriter, *http.Request) { t.Error("a stranger got a request") }
	l.serve("stranger", keys(t, "a third secret"), called)
	for _, process := range []string{"unknown", "refuses", "stranger"} {
		l.want("POST", process, 404, observe.ForwardedGone)
		if body := l.lastBody.Load(); *body != "{}" {
			t.Errorf("%s: the body is %q", process, *body)
		}
		l.want("GET", process, 404, observe.ForwardedGone)
	}
	if got := l.here.Load(); got != 6 {
		t.Errorf("%d requests were answered here", got)
	}
}

// TestForwarder_ownerSilent: the system accepts connections of a process that is stopped.
func TestForwarder_ownerSilent(t *testing.T) {
	l := newLab(t, secret)
	l.forwarder.accept = 50 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l.set("silent", listener.Addr().String(), nil)
	if header := l.want("POST", "silent", 503, observe.ForwardedUnavailable); header.Get("Retry-After") == "" {
		t.Errorf("header %v", header)
	}
	if l.here.Load() > 0 {
		t.Error("the request was answered here")
	}
}

func TestForwarder_brokenConnection(t *testing.T) {
	l := newLab(t, secret)
	var received atomic.Int64
	hangUp := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	l.serve("owner", keys(t, secret), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch received.Add(1); string(body) {
		case "{}":
			hangUp(w)
		case "stream":
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			hangUp(w)
		}
	})
	// A request on a connection that has served another one is not repeated either.
	for range 2 {
		r := l.request(t.Context(), "POST", "owner", "{}")
		r.Header.Set("Idempotency-Key", "k")
		if status, _, _ := l.send(r); status != 502 || <-l.outcomes != observe.ForwardedBroken {
			t.Errorf("status %d", status)
		}
		if status, _, _ := l.send(l.request(t.Context(), "POST", "owner", "ok")); status != 200 || <-l.outcomes != observe.ForwardedServed {
			t.Errorf("status %d", status)
		}
	}
	if got := received.Load(); got != 4 {
		t.Errorf("the owner received %d requests, want 4", got)
	}
	response, err := http.DefaultClient.Do(l.request(t.Context(), "POST", "owner", "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil || string(text) != "data: 1\n\n" {
		t.Errorf("the stream ended with %v after %q", err, text)
	}
	if outcome := <-l.outcomes; outcome != observe.ForwardedBroken {
		t.Errorf("outcome %s", outcome)
	}
}

// TestForwarder_streamEnds has the three ends of a stream that its owner does not end.
func TestForwarder_streamEnds(t *testing.T) {
	for name, outcome := range map[string]string{"client": observe.ForwardedCanceled, "drain": observe.ForwardedCanceled, "owner is presumed dead": observe.ForwardedBroken} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			l := newLab(t, secret)
			l.forwarder.watchEvery, l.forwarder.addresses.maxAge = time.Millisecond, time.Millisecond
			ended := make(chan struct{})
			l.serve("owner", keys(t, secret), func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				close(ended)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response, err := http.DefaultClient.Do(l.request(ctx, "GET", "owner", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			switch name {
			case "client":
				cancel()
			case "drain":
				close(l.draining)
			default:
				l.set("owner", "", nil)
			}
			if got := <-l.outcomes; got != outcome {
				t.Errorf("outcome %s, want %s", got, outcome)
			}
			<-ended
		})
	}
}

// TestForwarder_databaseAway: a process forwards to the owners that it has looked up before.
func TestForwarder_databaseAway(t *testing.T) {
	l := newLab(t, secret)
	l.serve("owner", keys(t, secret), func(http.ResponseWriter, *http.Request) {})
	l.want("POST", "owner", 200, observe.ForwardedServed)
	l.set("owner", "", errors.New("the database is away"))
	l.want("POST", "owner", 200, observe.ForwardedServed)
	if header := l.want("POST", "another", 503, observe.ForwardedUnavailable); header.Get("Retry-After") == "" {
		t.Errorf("header %v", header)
	}
	l.want("POST", "owner", 200, observe.ForwardedServed)
}

// TestAddresses_find: requests for processes that are gone share reads of the list.
func TestAddresses_find(t *testing.T) {
	l := newLab(t, secret)
	l.set("one", "192.0.2.1:1", nil)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if address, err := l.forwarder.addresses.find(t.Context(), "gone"); err != nil || address != "" {
				t.Errorf("%q, %v", address, err)
			}
		})
	}
	all.Wait()
	if l.reads > 20 {
		t.Errorf("%d reads", l.reads)
	}
	l.set("two", "192.0.2.2:1", nil) // known only to the next read
	for process, want := range map[string]string{"one": "192.0.2.1:1", "two": "192.0.2.2:1"} {
		if address, err := l.forwarder.addresses.find(t.Context(), process); err != nil || address != want {
			t.Errorf("%s: %q, %v", process, address, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.forwarder.addresses.find(ctx, "gone"); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.forwarder.Close()
	if _, err := l.forwarder.addresses.find(t.Context(), "gone"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}
