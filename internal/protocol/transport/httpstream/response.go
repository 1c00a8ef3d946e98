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
	Unread *httpguard.Budget
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
func (b Bounds) Options(transport string, r *http.Request, c *Caller) Options {
	return Options{Bounds: b, Client: c.Client, Transport: transport, RequestID: httpheader.RequestIDOf(r.Header), Access: c.Access}
}

// Options are the bounds and the log attributes of one response.
type Options struct {
	Bounds
	// Client is whom the messages that wait count for.
	Client workqueue.Client
	// Transport and Request are attributes in the log; Request is empty for a request
	// that has no id of its own.
	Transport, RequestID string
	// Pass is the credential of the client: a stream ends with it. Nil always holds.
	Access *authn.Access
}

// Answer is the response to one request: JSON, or a stream of server-sent
// events from the moment on that something is sent before the result. Its
// methods may be called from many goroutines. [Answer.Finish] must be called in
// the end.
type Response struct {
	// fixed at creation
	w       http.ResponseWriter
	control http.ResponseController
	outlet  *httpguard.Outlet
	options Options
	cancel  func()        // ends the request when its client is gone
	body    io.ReadCloser // of the request, where the answer may be late

	mu       sync.Mutex
	isStream bool
	finished bool
	detached bool        // the handler goes on when the response has ended
	err      error       // of the first write that failed
	timer    *time.Timer // of the next comment; nil until the response is a stream
}

var errFinished = errors.New("the response has ended")

// New returns the response that w writes. cancel is called when the client is
// gone, or takes too long.
func NewResponse(w http.ResponseWriter, o Options, cancel func()) *Response {
	return &Response{
		w: w, control: *http.NewResponseController(w), outlet: httpguard.NewOutlet(w, o.Unread, o.Client, o.WriteTimeout),
		options: o, cancel: cancel,
	}
}

// Cut has writing fail from now on, so that the connection ends. It does not wait, and
// must not be called any more once the handler has returned.
func (a *Response) Abort() { a.outlet.Abort() }

// Begin makes the response a stream at once.
func (a *Response) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(io.Writer) error { return nil })
}

// Send sends one message before the result. It fails, and so ends the connection, where
// there is no room for the message to wait for its turn.
func (a *Response) Send(f mcp.Frame) error {
	held := f.Len() > httpguard.Buffered
	if held && !a.outlet.Take(f.Len()) {
		a.cancel()
		return httpguard.ErrOverBudget
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
func (a *Response) SendRetry(id string, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "id: "+id+"\nretry: "+strconv.FormatInt(wait.Milliseconds(), 10)+"\ndata:\n\n")
		return err
	})
}

// Numbered sends one message as an event with an id.
func (a *Response) SendEvent(id string, f mcp.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.event("id: "+id+"\n", f)
}

// Endpoint tells the client where to send its messages (2024-11-05
// basic/transports, HTTP with SSE).
func (a *Response) SendEndpoint(uri string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "event: endpoint\ndata: "+uri+"\n\n")
		return err
	})
}

// Streams reports whether the response is a stream.
func (a *Response) IsStream() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.isStream
}

// event writes one message as an event, behind other fields of it. The caller
// holds mu.
func (a *Response) event(fields string, f mcp.Frame) error {
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
func (a *Response) write(piece func(io.Writer) error) error {
	if a.finished {
		return errFinished
	}
	if a.err != nil {
		return a.err
	}
	if a.err = a.options.Access.Check(); a.err != nil {
		a.cancel()
		return a.err
	}
	a.open()
	a.outlet.RenewDeadline()
	if a.err = piece(a.outlet); a.err == nil {
		a.err = a.flush()
	}
	if a.err != nil {
		a.logSlowClient(a.err)
		a.cancel()
	} else {
		a.timer.Reset(a.options.KeepAlive)
	}
	return a.err
}

// dropped tells the operator of a write that took too long.
func (a *Response) logSlowClient(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		told := []any{"transport", a.options.Transport, "waited", a.options.WriteTimeout}
		if a.options.RequestID != "" {
			told = append(told, "request_id", a.options.RequestID)
		}
		a.options.Logger.Info("a client does not read: it is dropped", told...)
	}
}

// open sends the head of a stream, once.
func (a *Response) open() {
	if a.isStream {
		return
	}
	a.isStream = true
	a.timer = time.AfterFunc(a.options.KeepAlive, a.keepAlive)
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
}

// keepAlive sends a comment when the stream was silent for too long, so that
// nobody on the way takes the connection for dead.
func (a *Response) keepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, ":\n\n")
		return err
	})
}

// flush sends what was written. A writer that cannot is left to send it later.
func (a *Response) flush() error {
	if err := a.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Finish ends the response with the reply. Nothing is written after it, and a
// response that has ended stays as it is.
func (a *Response) Finish(r mcp.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(r)
}

// finish is Finish for who holds mu.
func (a *Response) finish(r mcp.Reply) {
	if a.finished {
		return
	}
	r = a.reserve(r)
	lapsed := a.options.Access.Check()
	switch {
	case !a.isStream && lapsed != nil:
		WriteError(a.w, http.StatusUnauthorized, lapsed.Error())
	case !a.isStream:
		a.writeReply(r)
	case !r.Frame.IsZero():
		_ = a.event("", r.Frame)
	}
	a.finished = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if !a.detached {
		a.outlet.Close()
	}
}

// within returns the reply, or what is said in its place where there is no room
// for it to wait until the client has read it.
func (a *Response) reserve(r mcp.Reply) mcp.Reply {
	if r.Frame.Len() <= httpguard.Buffered || a.outlet.Take(r.Frame.Len()) {
		return r
	}
	return r.WithoutRoom()
}

// plain answers without a stream. The caller holds mu.
func (a *Response) writeReply(r mcp.Reply) {
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
		_ = writeJSON(a.w, httpStatus(r.Refusal), r.Frame, a.detached)
		return
	}
	a.outlet.RenewDeadline()
	writeHead(a.w, httpStatus(r.Refusal), r.Frame, true)
	_, err := r.Frame.WriteTo(a.outlet)
	if err == nil {
		err = a.flush()
	}
	a.logSlowClient(err)
}

// LateFor returns what ends the response to r while its handler goes on. It is
// nil where the response only ends with the handler: that of HTTP/2, and one
// whose writer cannot give its connection away.
func (a *Response) Detached(r *http.Request) mcp.DetachedResponse {
	if r.ProtoMajor != 1 || !canHijack(a.w) {
		return nil
	}
	a.body = r.Body
	return (*detachedResponse)(a)
}

// givesAway reports whether [http.ResponseController.Hijack] may succeed.
func canHijack(w http.ResponseWriter) bool {
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
type detachedResponse Response

// Late is [Answer.Finish], and ends the connection, as nobody knows when the
// handler will end, whether or not the client has read the answer. That of a
// stream ends with the handler.
func (l *detachedResponse) Finish(r mcp.Reply) {
	a := (*Response)(l)
	defer httpguard.ReleaseBody(a.body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isStream {
		a.finish(r)
		return
	}
	a.w.Header().Set("Connection", "close")
	a.detached = true
	a.finish(r)
	a.outlet.RenewDeadline()
	a.logSlowClient(a.flush())
	a.outlet.Close()
	if conn, _, err := a.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
