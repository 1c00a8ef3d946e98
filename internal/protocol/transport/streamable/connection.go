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

// carrier is one connection that carries a stream.
type streamConn struct {
	// fixed at creation
	stream *stream
	answer *httpstream.Response
	hold   *httpguard.Hold // of the events that it has yet to carry
	retry  time.Duration   // how long the client is to wait before it comes back
	gone   <-chan struct{} // closed when the client is gone
	cancel func()
	wakeup chan struct{} // holds a value when there is something to look at
	closed chan struct{} // closed when the connection is to be closed
	// draining is closed when what may take forever is to end.
	draining <-chan struct{}

	closeOnce sync.Once

	// at is the number of the last event that the connection has carried;
	// only its own goroutine touches it.
	lastSent int
}

// newCarrier returns the response as a connection that carries a stream, from
// the event after the one with the number on; nil when events from there on
// are not kept any more. [carrier.carry] must be called.
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

// carry carries the stream until it or the connection ends. source gives the
// stream what it is to tell; nil for the answer to a POST.
func (c *streamConn) serve(source *mcp.Stream) {
	defer c.cancel()
	defer c.hold.ReleaseAll()
	defer c.stream.detach(c)
	var reply mcp.Reply
	defer func() { c.answer.Finish(reply) }()
	reply = c.run(source)
}

// run carries events until there are no more, the client is gone, or the
// connection is to be closed. The reply is what was answered before any event
// came, which needs no stream.
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

// draw puts what the source has to tell on the stream; false means that its
// client is gone.
func (c *streamConn) pull(source *mcp.Stream) bool {
	frames, ok := source.Take()
	for _, f := range frames {
		// A stream that is carried on behalf of a source has no end.
		_ = c.stream.put(f)
	}
	return ok
}

// wait waits until there is something to look at; false means that there is
// nothing to wait for.
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

// open opens the stream, and tells the client how to come back to it.
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

// drop ends the connection, for which there is no room. Its client may come back for what
// it has missed.
func (c *streamConn) drop() {
	c.answer.Abort()
	c.wake()
}

func (c *streamConn) close() { c.closeOnce.Do(func() { close(c.closed) }) }
