package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// streamConn is one connection that carries a stream.
type streamConn struct {
	// fixed at creation
	stream *stream
	answer *httpstream.Response
	hold   *httpguard.Hold // for the events that it has not sent yet
	retry  time.Duration   // delay before the client reconnects
	gone   <-chan struct{} // closed when the client is gone
	cancel func()
	wakeup chan struct{} // has a value when there may be something to send
	closed chan struct{} // closed to close the connection
	// draining is closed when streams without an end must end.
	draining <-chan struct{}

	closeOnce sync.Once

	// lastSent is the number of the last sent event; only the connection's own
	// goroutine accesses it.
	lastSent int
}

// newStreamConn returns the response as a connection that carries a stream,
// from the event after the number. It returns nil if those events are no longer
// stored. The caller must call [streamConn.serve].
func (h *handler) newStreamConn(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller, s *stream, after int) *streamConn {
	ctx, cancel := context.WithCancel(r.Context())
	c := &streamConn{
		lastSent: after, stream: s, answer: httpstream.NewResponse(w, h.options.Options("http", r, caller), cancel), retry: h.options.RetryDelay, gone: ctx.Done(), cancel: cancel,
		wakeup: make(chan struct{}, 1), closed: make(chan struct{}), draining: h.server.Draining(),
	}
	c.hold = h.options.Unread.Hold(caller.Client, c.answer)
	if !s.attach(c, after) {
		cancel()
		return nil
	}
	return c
}

// serve carries the stream until it or the connection ends. source supplies the
// messages of a listening stream; it is nil for the response to a POST.
func (c *streamConn) serve(source *mcp.Stream) {
	defer c.cancel()
	defer c.hold.ReleaseAll()
	defer c.stream.detach(c)
	var reply mcp.Reply
	defer func() { c.answer.Finish(reply) }()
	reply = c.run(source)
}

// run sends events until the stream ends, the client is gone, or the connection
// must close. The reply is set if there was no event before it, so that it
// needs no stream.
func (c *streamConn) run(source *mcp.Stream) (reply mcp.Reply) {
	for {
		if source != nil && !c.pull(source) {
			return reply
		}
		frames, done, ok := c.stream.next(c)
		switch {
		case !ok || !c.write(frames):
			return reply
		case done:
			return c.stream.soleReply()
		case !c.wait(source):
			return reply
		}
	}
}

// pull puts the messages of the source on the stream. It returns false if its
// client is gone.
func (c *streamConn) pull(source *mcp.Stream) bool {
	frames, ok := source.Take()
	for _, f := range frames {
		// A stream with a source never ends by itself.
		_ = c.stream.put(f)
	}
	return ok
}

// wait waits until there may be something to send. It returns false when the
// connection must end.
func (c *streamConn) wait(source *mcp.Stream) bool {
	var woken, ended, draining <-chan struct{}
	if source != nil {
		woken, ended, draining = source.Wake(), source.Ended(), c.draining
	}
	select {
	case <-c.wakeup:
	case <-woken:
	case <-ended:
		return false
	case <-draining:
		return false
	case <-c.gone:
		return false
	case <-c.closed:
		c.open()
		return false
	}
	return true
}

// open starts the stream, and sends what the client needs to resume it.
func (c *streamConn) open() {
	if c.stream.sendsRetry {
		c.answer.SendRetry(c.stream.eventID(c.lastSent), c.retry)
	} else {
		c.answer.Start()
	}
}

func (c *streamConn) write(frames []mcp.Frame) bool {
	for _, f := range frames {
		if c.lastSent == 0 && !c.answer.IsStream() {
			c.open()
		}
		if c.lastSent++; c.answer.SendEvent(c.stream.eventID(c.lastSent), f) != nil {
			return false
		}
		c.stream.markSent(c, f)
	}
	return true
}

func (c *streamConn) wake() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// drop ends the connection because there is no room for its events. The client
// may reconnect for them.
func (c *streamConn) drop() {
	c.answer.Abort()
	c.wake()
}

func (c *streamConn) close() { c.closeOnce.Do(func() { close(c.closed) }) }
