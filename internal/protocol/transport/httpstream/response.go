// Package httpstream is the shared part of the HTTP transports: one request
// that carries a text or opens a stream, and its response.
//
// [Authenticate], [CheckContentType], [ParseAccept] and [Read] validate a
// request; a [Response] is its response, JSON or a stream of server-sent
// events, each write with a timeout. [WriteError] answers requests that do not
// reach the protocol.
//
// The package has no routes and no sessions, and makes no decision about a
// message.
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

// Bounds limit the writing of responses. The zero value means the defaults.
type Bounds struct {
	// WriteTimeout is the time for a client to read one message, or 64 KiB of a
	// longer one; 0 means 10 s. A slower client is disconnected.
	WriteTimeout time.Duration
	// KeepAlive is the idle time after which a stream sends a comment; 0 means 15
	// s.
	KeepAlive time.Duration
	// Unread bounds the messages that clients have not read; nil means no limit.
	Unread *httpguard.Budget
	// Logger logs slow clients that are disconnected; nil discards the records.
	Logger *slog.Logger
}

// WithDefaults returns the bounds with every field set except Unread.
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

// Options returns the options of the response to a caller's request. transport
// is its name in the log.
func (b Bounds) Options(transport string, r *http.Request, c *Caller) Options {
	return Options{Bounds: b, Client: c.Client, Transport: transport, RequestID: httpheader.RequestIDOf(r.Header), Access: c.Access}
}

// Options are the limits and the log attributes of one response.
type Options struct {
	Bounds
	// Client is the client that unread messages count for.
	Client workqueue.Client
	// Transport and RequestID are log attributes. RequestID is empty for a
	// request without an id.
	Transport, RequestID string
	// Access is the access of the client: a stream ends with it. Nil never ends.
	Access *authn.Access
}

// Response is the response to one request: JSON, or a stream of server-sent
// events as soon as something precedes the result. Its methods are safe for
// concurrent use. The caller must call [Response.Finish] at the end.
type Response struct {
	// fixed at creation
	w       http.ResponseWriter
	control http.ResponseController
	writer  *httpguard.BudgetWriter
	options Options
	cancel  func()        // cancels the request when its client is gone
	body    io.ReadCloser // of the request, if the response may be detached

	mu       sync.Mutex
	isStream bool
	finished bool
	detached bool        // the handler continues after the response
	err      error       // the first write error
	timer    *time.Timer // sends the next comment; nil until the response is a stream
}

var errFinished = errors.New("the response has ended")

// NewResponse returns the response that w writes. It calls cancel when the
// client is gone or too slow.
func NewResponse(w http.ResponseWriter, o Options, cancel func()) *Response {
	return &Response{
		w: w, control: *http.NewResponseController(w), writer: httpguard.NewBudgetWriter(w, o.Unread, o.Client, o.WriteTimeout),
		options: o, cancel: cancel,
	}
}

// Abort makes later writes fail, so that the connection ends. It does not
// block, and must not be called after the handler returns.
func (resp *Response) Abort() { resp.writer.Abort() }

// Start makes the response a stream at once.
func (resp *Response) Start() {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	_ = resp.write(func(io.Writer) error { return nil })
}

// Send sends one message before the result. If there is no room for the message
// to wait, Send fails and ends the connection.
func (resp *Response) Send(f mcp.Frame) error {
	held := f.Len() > httpguard.Buffered
	if held && !resp.writer.Take(f.Len()) {
		resp.cancel()
		return httpguard.ErrOverBudget
	}
	resp.mu.Lock()
	defer resp.mu.Unlock()
	if held {
		defer resp.writer.Release(f.Len())
	}
	return resp.event("", f)
}

// SendRetry sends the event id and the delay with which the client may resume
// the stream (2025-11-25 basic/transports, Sending Messages to the Server).
func (resp *Response) SendRetry(id string, wait time.Duration) {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	_ = resp.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "id: "+id+"\nretry: "+strconv.FormatInt(wait.Milliseconds(), 10)+"\ndata:\n\n")
		return err
	})
}

// SendEvent sends one message as an event with an id.
func (resp *Response) SendEvent(id string, f mcp.Frame) error {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.event("id: "+id+"\n", f)
}

// SendEndpoint sends the URI for the client's messages (2024-11-05
// basic/transports, HTTP with SSE).
func (resp *Response) SendEndpoint(uri string) error {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "event: endpoint\ndata: "+uri+"\n\n")
		return err
	})
}

// IsStream reports whether the response is a stream.
func (resp *Response) IsStream() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.isStream
}

// event writes one message as an event, after the other fields. The caller
// holds mu.
func (resp *Response) event(fields string, f mcp.Frame) error {
	return resp.write(func(w io.Writer) error {
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

// write writes a piece of the stream within its time. If the client does not
// read it, write cancels the request. The caller holds mu.
func (resp *Response) write(piece func(io.Writer) error) error {
	if resp.finished {
		return errFinished
	}
	if resp.err != nil {
		return resp.err
	}
	if resp.err = resp.options.Access.Check(); resp.err != nil {
		resp.cancel()
		return resp.err
	}
	resp.open()
	resp.writer.RenewDeadline()
	if resp.err = piece(resp.writer); resp.err == nil {
		resp.err = resp.flush()
	}
	if resp.err != nil {
		resp.logSlowClient(resp.err)
		resp.cancel()
	} else {
		resp.timer.Reset(resp.options.KeepAlive)
	}
	return resp.err
}

// logSlowClient logs a write that timed out.
func (resp *Response) logSlowClient(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		attributes := []any{"transport", resp.options.Transport, "waited", resp.options.WriteTimeout}
		if resp.options.RequestID != "" {
			attributes = append(attributes, "request_id", resp.options.RequestID)
		}
		resp.options.Logger.Info("disconnect slow client", attributes...)
	}
}

// open sends the header of a stream, once.
func (resp *Response) open() {
	if resp.isStream {
		return
	}
	resp.isStream = true
	resp.timer = time.AfterFunc(resp.options.KeepAlive, resp.keepAlive)
	h := resp.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	resp.w.WriteHeader(http.StatusOK)
}

// keepAlive sends a comment after an idle time, so that no proxy closes the
// connection.
func (resp *Response) keepAlive() {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	_ = resp.write(func(w io.Writer) error {
		_, err := io.WriteString(w, ":\n\n")
		return err
	})
}

// flush sends what was written, if the writer supports it.
func (resp *Response) flush() error {
	if err := resp.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Finish ends the response with the reply. It does nothing if the response has
// ended.
func (resp *Response) Finish(r mcp.Reply) {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	resp.finish(r)
}

// finish is Finish for callers that hold mu.
func (resp *Response) finish(r mcp.Reply) {
	if resp.finished {
		return
	}
	r = resp.reserve(r)
	revoked := resp.options.Access.Check()
	switch {
	case !resp.isStream && revoked != nil:
		WriteError(resp.w, http.StatusUnauthorized, revoked.Error())
	case !resp.isStream:
		resp.writeReply(r)
	case !r.Frame.IsZero():
		_ = resp.event("", r.Frame)
	}
	resp.finished = true
	if resp.timer != nil {
		resp.timer.Stop()
	}
	if !resp.detached {
		resp.writer.Close()
	}
}

// reserve reserves budget for the reply. If there is no room, it returns an
// error reply instead.
func (resp *Response) reserve(r mcp.Reply) mcp.Reply {
	if r.Frame.Len() <= httpguard.Buffered || resp.writer.Take(r.Frame.Len()) {
		return r
	}
	return r.WithoutRoom()
}

// writeReply writes a response that is not a stream. The caller holds mu.
func (resp *Response) writeReply(r mcp.Reply) {
	if r.Session != "" {
		resp.w.Header().Set("Mcp-Session-Id", r.Session)
	}
	if r.Frame.IsZero() {
		resp.w.WriteHeader(http.StatusAccepted)
		return
	}
	if r.Refusal == mcp.Unavailable {
		r.RetryAfter = max(r.RetryAfter, time.Second)
	}
	if r.RetryAfter > 0 {
		httpheader.SetRetryAfter(resp.w.Header(), r.RetryAfter)
	}
	if r.Frame.Len() <= httpguard.Buffered {
		_ = writeJSON(resp.w, httpStatus(r.Refusal), r.Frame, resp.detached)
		return
	}
	resp.writer.RenewDeadline()
	writeHead(resp.w, httpStatus(r.Refusal), r.Frame, true)
	_, err := r.Frame.WriteTo(resp.writer)
	if err == nil {
		err = resp.flush()
	}
	resp.logSlowClient(err)
}

// Detached returns what ends the response to r while its handler is blocked. It
// is nil if the response only ends with the handler: for HTTP/2, and for a
// writer that cannot be hijacked.
func (resp *Response) Detached(r *http.Request) mcp.DetachedResponse {
	if r.ProtoMajor != 1 || !canHijack(resp.w) {
		return nil
	}
	resp.body = r.Body
	return (*detachedResponse)(resp)
}

// HangUp closes the connection of a finished stream while the handler of r
// continues. It does nothing for a response that only ends with the handler.
func (resp *Response) HangUp(r *http.Request) {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	if r.ProtoMajor != 1 || !canHijack(resp.w) {
		return
	}
	resp.writer.RenewDeadline()
	_ = resp.flush()
	conn, _, err := resp.control.Hijack()
	if err != nil {
		return
	}
	if resp.isStream && r.ProtoAtLeast(1, 1) && resp.err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(resp.options.WriteTimeout)) // Hijack removes the deadline
		_, _ = io.WriteString(conn, lastChunk)
	}
	_ = conn.Close()
}

// lastChunk ends a chunked body (RFC 9112 section 7.1).
const lastChunk = "0\r\n\r\n"

// canHijack reports whether [http.ResponseController.Hijack] may succeed.
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

// detachedResponse is a response whose handler continues.
type detachedResponse Response

// Finish is [Response.Finish]. It also closes the connection, because the
// handler may end at any time, regardless of the client. A stream ends with the
// handler.
func (d *detachedResponse) Finish(r mcp.Reply) {
	a := (*Response)(d)
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
	a.writer.RenewDeadline()
	a.logSlowClient(a.flush())
	a.writer.Close()
	if conn, _, err := a.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
