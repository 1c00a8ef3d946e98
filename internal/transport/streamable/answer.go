package streamable

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/mcp"
)

// answer is the response to one request: JSON, or a stream of server-sent
// events from the moment on that something is sent before the result.
type answer struct {
	// fixed at creation
	w       http.ResponseWriter
	control *http.ResponseController
	options Options
	cancel  func() // ends the request when its client is gone

	mu       sync.Mutex
	streams  bool
	finished bool
	err      error       // of the first write that failed
	timer    *time.Timer // of the next comment; nil until the response is a stream
}

var errFinished = errors.New("the response has ended")

func newAnswer(w http.ResponseWriter, o Options, cancel func()) *answer {
	return &answer{w: w, control: http.NewResponseController(w), options: o, cancel: cancel}
}

// begin makes the response a stream at once.
func (a *answer) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(io.Writer) error { return nil })
}

// send sends one message before the result.
func (a *answer) send(f mcp.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.event("", f)
}

// prime tells the client how to come back to the stream: after the event with
// the id (2025-11-25 basic/transports, Sending Messages to the Server).
func (a *answer) prime(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "id: "+id+"\nretry: "+strconv.FormatInt(a.options.Retry.Milliseconds(), 10)+"\ndata:\n\n")
		return err
	})
}

// numbered sends one message as an event with an id.
func (a *answer) numbered(id string, f mcp.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.event("id: "+id+"\n", f)
}

// event writes one message as an event, behind other fields of it. The caller
// holds mu.
func (a *answer) event(fields string, f mcp.Frame) error {
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
func (a *answer) write(piece func(io.Writer) error) error {
	if a.finished {
		return errFinished
	}
	if a.err != nil {
		return a.err
	}
	a.open()
	a.limit()
	if a.err = piece(a.w); a.err == nil {
		a.err = a.flush()
	}
	if a.err != nil {
		a.cancel()
	} else {
		a.timer.Reset(a.options.KeepAlive)
	}
	return a.err
}

// open sends the head of a stream, once.
func (a *answer) open() {
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
func (a *answer) keepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, ":\n\n")
		return err
	})
}

// flush sends what was written. A writer that cannot is left to send it later.
func (a *answer) flush() error {
	if err := a.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// limit gives the client its time for the next write.
func (a *answer) limit() { _ = a.control.SetWriteDeadline(time.Now().Add(a.options.WriteTimeout)) }

// finish ends the response with the reply. Nothing is written after it.
func (a *answer) finish(r mcp.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
	switch {
	case !a.streams:
		a.limit()
		a.plain(r)
		_ = a.flush()
	case !r.Frame.IsZero():
		_ = a.event("", r.Frame)
	}
	a.finished = true
	// The connection may carry other requests, which have times of their own.
	_ = a.control.SetWriteDeadline(time.Time{})
}

// plain answers without a stream. The caller holds mu.
func (a *answer) plain(r mcp.Reply) {
	if r.Session != "" {
		a.w.Header().Set(headerSession, r.Session)
	}
	if r.Frame.IsZero() {
		a.w.WriteHeader(http.StatusAccepted)
		return
	}
	if r.Refusal == mcp.Unavailable {
		a.w.Header().Set("Retry-After", "1")
	}
	writeJSON(a.w, statusOf(r.Refusal), r.Frame)
}

// writeJSON writes the whole response. A write that fails has nobody to tell.
func writeJSON(w http.ResponseWriter, status int, f mcp.Frame) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(f.Len()))
	w.WriteHeader(status)
	_, _ = f.WriteTo(w)
}

// statusOf maps a refusal to HTTP (2026-07-28 basic/transports/streamable-http,
// Protocol Version Header and Server Validation; 2025-11-25 basic/transports,
// Session Management).
func statusOf(r mcp.Refusal) int {
	switch r {
	case mcp.Malformed:
		return http.StatusBadRequest
	case mcp.TooLarge:
		return http.StatusRequestEntityTooLarge
	case mcp.UnknownMethod, mcp.UnknownSession:
		return http.StatusNotFound
	case mcp.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
