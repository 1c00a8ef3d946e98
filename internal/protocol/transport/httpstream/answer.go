// Package httpstream is what the transports over HTTP have in common: one request
// that brings a text, or opens a stream, and its response.
//
// [Enter], [Judge], [AcceptOf] and [Read] hold a request to what any of them
// may carry; an [Answer] is its response, JSON or a stream of server-sent
// events, each write within its time. [Refuse] answers what does not reach the
// protocol.
//
// The package knows no route and no session, and decides nothing about a message.
package httpstream

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Bounds bound how responses are written. The zero value stands for the defaults.
type Bounds struct {
	// WriteTimeout is how long a client may take to receive one message, or 64 KiB
	// of a longer one; 0 stands for 10 s. A slower client is dropped.
	WriteTimeout time.Duration
	// KeepAlive is how long a stream may be silent before a comment is sent on
	// it; 0 stands for 15 s.
	KeepAlive time.Duration
	// Answers bounds the messages that wait for their clients to read them; nil
	// stands for no bound.
	Answers *httpguard.Budget
	// Logger records clients that are dropped as they do not read; nil drops the records.
	Logger *slog.Logger
}

// WithDefaults returns the bounds with every field set but Answers.
func (b Bounds) WithDefaults() Bounds {
	if b.WriteTimeout <= 0 {
		b.WriteTimeout = 10 * time.Second
	}
	if b.KeepAlive <= 0 {
		b.KeepAlive = 15 * time.Second
	}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	return b
}

// For returns the options of the response to a request of a caller. transport is its
// name in the log.
func (b Bounds) For(transport string, r *http.Request, c *Caller) Options {
	return Options{Bounds: b, Client: c.Client, Transport: transport, Request: httpheader.RequestIDOf(r.Header), Pass: c.Pass}
}

// Options are the bounds and the log attributes of one response.
type Options struct {
	Bounds
	// Client is whom the messages that wait count for.
	Client workqueue.Client
	// Transport and Request are attributes in the log; Request is empty for a request
	// that has no id of its own.
	Transport, Request string
	// Pass is the credential of the client: a stream ends with it. Nil always holds.
	Pass *authn.Pass
}

// Answer is the response to one request: JSON, or a stream of server-sent
// events from the moment on that something is sent before the result. Its
// methods may be called from many goroutines. [Answer.Finish] must be called in
// the end.
type Answer struct {
	// fixed at creation
	w       http.ResponseWriter
	control http.ResponseController
	outlet  *httpguard.Outlet
	options Options
	cancel  func()        // ends the request when its client is gone
	body    io.ReadCloser // of the request, where the answer may be late

	mu       sync.Mutex
	streams  bool
	finished bool
	late     bool        // the handler goes on when the response has ended
	err      error       // of the first write that failed
	timer    *time.Timer // of the next comment; nil until the response is a stream
}

var errFinished = errors.New("the response has ended")

// New returns the response that w writes. cancel is called when the client is
// gone, or takes too long.
func New(w http.ResponseWriter, o Options, cancel func()) *Answer {
	return &Answer{
		w: w, control: *http.NewResponseController(w), outlet: httpguard.NewOutlet(w, o.Answers, o.Client, o.WriteTimeout),
		options: o, cancel: cancel,
	}
}

// Cut has writing fail from now on, so that the connection ends. It does not wait, and
// must not be called any more once the handler has returned.
func (a *Answer) Cut() { a.outlet.Cut() }

// Begin makes the response a stream at once.
func (a *Answer) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(io.Writer) error { return nil })
}

// Send sends one message before the result. It fails, and so ends the connection, where
// there is no room for the message to wait for its turn.
func (a *Answer) Send(f mcp.Frame) error {
	held := f.Len() > httpguard.Buffered
	if held && !a.outlet.Take(f.Len()) {
		a.cancel()
		return httpguard.ErrCrowded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if held {
		defer a.outlet.Release(f.Len())
	}
	return a.event("", f)
}

// Prime tells the client how to come back to the stream: after the event with
// the id, once it has waited (2025-11-25 basic/transports, Sending Messages to
// the Server).
func (a *Answer) Prime(id string, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "id: "+id+"\nretry: "+strconv.FormatInt(wait.Milliseconds(), 10)+"\ndata:\n\n")
		return err
	})
}

// Numbered sends one message as an event with an id.
func (a *Answer) Numbered(id string, f mcp.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.event("id: "+id+"\n", f)
}

// Endpoint tells the client where to send its messages (2024-11-05
// basic/transports, HTTP with SSE).
func (a *Answer) Endpoint(uri string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "event: endpoint\ndata: "+uri+"\n\n")
		return err
	})
}

// Streams reports whether the response is a stream.
func (a *Answer) Streams() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams
}

// event writes one message as an event, behind other fields of it. The caller
// holds mu.
func (a *Answer) event(fields string, f mcp.Frame) error {
	return a.write(func(w io.Writer) error {
		if _, err := io.WriteString(w, fields+"event: message\ndata: "); err != nil {
			return err
		}
		if _, err := f.WriteTo(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n\n")
		return err
	})
}

// write writes a piece of the stream within its time; a client that does not
// take it is gone. The caller holds mu.
func (a *Answer) write(piece func(io.Writer) error) error {
	if a.finished {
		return errFinished
	}
	if a.err != nil {
		return a.err
	}
	if a.err = a.options.Pass.Holds(); a.err != nil {
		a.cancel()
		return a.err
	}
	a.open()
	a.outlet.Renew()
	if a.err = piece(a.outlet); a.err == nil {
		a.err = a.flush()
	}
	if a.err != nil {
		a.dropped(a.err)
		a.cancel()
	} else {
		a.timer.Reset(a.options.KeepAlive)
	}
	return a.err
}

// dropped tells the operator of a write that took too long.
func (a *Answer) dropped(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		told := []any{"transport", a.options.Transport, "waited", a.options.WriteTimeout}
		if a.options.Request != "" {
			told = append(told, "request_id", a.options.Request)
		}
		a.options.Logger.Info("a client does not read: it is dropped", told...)
	}
}

// open sends the head of a stream, once.
func (a *Answer) open() {
	if a.streams {
		return
	}
	a.streams = true
	a.timer = time.AfterFunc(a.options.KeepAlive, a.keepAlive)
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
}

// keepAlive sends a comment when the stream was silent for too long, so that
// nobody on the way takes the connection for dead.
func (a *Answer) keepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, ":\n\n")
		return err
	})
}

// flush sends what was written. A writer that cannot is left to send it later.
func (a *Answer) flush() error {
	if err := a.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Finish ends the response with the reply. Nothing is written after it, and a
// response that has ended stays as it is.
func (a *Answer) Finish(r mcp.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(r)
}

// finish is Finish for who holds mu.
func (a *Answer) finish(r mcp.Reply) {
	if a.finished {
		return
	}
	r = a.within(r)
	lapsed := a.options.Pass.Holds()
	switch {
	case !a.streams && lapsed != nil:
		Refuse(a.w, http.StatusUnauthorized, lapsed.Error())
	case !a.streams:
		a.plain(r)
	case !r.Frame.IsZero():
		_ = a.event("", r.Frame)
	}
	a.finished = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if !a.late {
		a.outlet.End()
	}
}

// within returns the reply, or what is said in its place where there is no room
// for it to wait until the client has read it.
func (a *Answer) within(r mcp.Reply) mcp.Reply {
	if r.Frame.Len() <= httpguard.Buffered || a.outlet.Take(r.Frame.Len()) {
		return r
	}
	return r.WithoutRoom()
}

// plain answers without a stream. The caller holds mu.
func (a *Answer) plain(r mcp.Reply) {
	if r.Session != "" {
		a.w.Header().Set("Mcp-Session-Id", r.Session)
	}
	if r.Frame.IsZero() {
		a.w.WriteHeader(http.StatusAccepted)
		return
	}
	if r.Refusal == mcp.Unavailable {
		r.RetryAfter = max(r.RetryAfter, time.Second)
	}
	if r.RetryAfter > 0 {
		httpheader.SetRetryAfter(a.w.Header(), r.RetryAfter)
	}
	if r.Frame.Len() <= httpguard.Buffered {
		_ = writeJSON(a.w, statusOf(r.Refusal), r.Frame, a.late)
		return
	}
	a.outlet.Renew()
	writeHead(a.w, statusOf(r.Refusal), r.Frame, true)
	_, err := r.Frame.WriteTo(a.outlet)
	if err == nil {
		err = a.flush()
	}
	a.dropped(err)
}

// LateFor returns what ends the response to r while its handler goes on. It is
// nil where the response only ends with the handler: that of HTTP/2, and one
// whose writer cannot give its connection away.
func (a *Answer) Detached(r *http.Request) mcp.DetachedResponse {
	if r.ProtoMajor != 1 || !givesAway(a.w) {
		return nil
	}
	a.body = r.Body
	return (*detachedResponse)(a)
}

// givesAway reports whether [http.ResponseController.Hijack] may succeed.
func givesAway(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}

// late is an answer whose handler goes on.
type detachedResponse Answer

// Late is [Answer.Finish], and ends the connection, as nobody knows when the
// handler will end, whether or not the client has read the answer. That of a
// stream ends with the handler.
func (l *detachedResponse) Finish(r mcp.Reply) {
	a := (*Answer)(l)
	defer httpguard.Leave(a.body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams {
		a.finish(r)
		return
	}
	a.w.Header().Set("Connection", "close")
	a.late = true
	a.finish(r)
	a.outlet.Renew()
	a.dropped(a.flush())
	a.outlet.End()
	if conn, _, err := a.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
