package mcp

import (
	"context"
	"errors"

	"github.com/mcpd/mcpd/identity"
)

// Conn is one client on a connection that carries messages both ways, in
// order, such as stdio, a WebSocket, or HTTP+SSE. It serves both eras at once.
type Conn struct {
	// fixed at creation
	server *Server
	work   *drainGroup
	calls  inflight

	// origin is that of the next message; only Receive touches it.
	origin origin
}

// ErrCrowded says that there is no room for a frame until its client has read those
// before it.
var ErrQueueFull = errors.New("there is no room for the message")

// Connect takes on a client. send sends one frame whole; it is called from many
// goroutines. It returns an error when the client is gone, and [ErrCrowded] for a frame
// that it has no room for: a short answer is sent then instead. [Conn.Close] must be
// called in the end. Connect returns nil when the server is draining.
func (s *Server) Connect(p Peer, send func(Frame) error) *Conn {
	if !s.work.add() {
		return nil
	}
	c := &Conn{server: s, work: newDrainGroup()}
	c.origin = origin{peer: p, calls: &c.calls, emit: send, ending: c.work.ending, conn: c}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	select {
	case <-s.work.ending:
		c.work.end()
	default:
	}
	return c
}

// Receive takes the next text from the client: one message, or a batch. What
// may take long is served in a goroutine of its own, so that Receive returns
// soon. ctx is that of the connection and ends with it. The text belongs to
// the connection until served is called, which may be nil. Receive must not be
// called by two goroutines at once.
func (c *Conn) Receive(ctx context.Context, text []byte, served func()) {
	if b := c.take(ctx, text, served); b != nil {
		go c.serve(b)
	}
}

// Deliver is [Conn.Receive] for a text that came in on a side channel, which is
// told when the text cannot be taken in: the reply is zero when it was. Its calls
// are those of the sender, for whom [Conn.BelongsTo] holds: another credential of
// the same principal may be worth less than the one that the connection has. What the
// headers of the sender claim is joined with what those of the connection do.
func (c *Conn) Deliver(ctx context.Context, sender Peer, text []byte, served func()) Reply {
	b, f := c.receive(ctx, &sender, text, served)
	if f != nil {
		if b != nil {
			b.served()
		}
		return refuse(nil, f)
	}
	if b != nil {
		go c.serve(b)
	}
	return Reply{}
}

// take takes the next text in and answers it, unless that may take long: then
// it returns what is to be served.
func (c *Conn) take(ctx context.Context, text []byte, served func()) *batch {
	b, f := c.receive(ctx, &c.origin.peer, text, served)
	switch {
	case f == nil:
		return b
	case b != nil:
		c.rejectBatch(b)
		b.served()
	default:
		c.answer(refuse(nil, f))
	}
	return nil
}

// receive takes the next text of a sender in, and returns the batch when to serve it may
// take long. The fault is that of the text as a whole, or, where there is a
// batch, says that nothing new may begin.
func (c *Conn) receive(ctx context.Context, sender *Peer, text []byte, served func()) (*batch, *fault) {
	if served == nil {
		served = func() {}
	}
	if c.origin.session != nil {
		c.origin.session.received.Add(1)
	}
	b, f := parse(text, c.server.options.Limits)
	if f != nil {
		served()
		return nil, f
	}
	b.served = served
	if !c.work.add() {
		return b, draining()
	}
	o := c.origin
	o.peer.Principal, o.peer.Source = sender.Principal, sender.Source
	if sender != &c.origin.peer {
		o.sent = sender.Headers
	}
	f = c.server.accept(ctx, o, b)
	if f == nil && b.slow() {
		return b, nil
	}
	defer served()
	defer c.work.done()
	if f == nil {
		r := b.serve()
		// Who has the answer to initialize hears of every change from then on.
		if b.origin.session == nil && c.origin.session != nil {
			defer c.startFeed(ctx, c.origin.session)()
		}
		c.answer(r)
	}
	return nil, f
}

// Reject answers a text that the transport could not take in, such as one that
// is too long to be read at all.
func (c *Conn) Reject(reason string) {
	c.answer(refuse(nil, malformed(reason)))
}

// BelongsTo reports whether the client has proved to be the principal.
func (c *Conn) BelongsTo(p identity.Principal) bool { return samePrincipal(c.origin.peer.Principal, p) }

// End lets nothing new begin: no more will come, or the transport wants to stop.
// The calls under way go on to their end.
func (c *Conn) End() { c.work.end() }

// Ending is closed when nothing new may begin.
func (c *Conn) Ending() <-chan struct{} { return c.work.ending }

// Done is closed when the connection is to be closed: nothing new may begin,
// and nothing is under way any more.
func (c *Conn) Done() <-chan struct{} { return c.work.idle }

// Close ends the connection, waits for what is under way, and takes the client
// off the server. The context of a connection that was lost should have ended before.
func (c *Conn) Close() {
	c.work.end()
	<-c.work.idle
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	c.server.work.done()
}

func (c *Conn) serve(b *batch) {
	b.allowDetach()
	var r Reply
	defer func() {
		if !b.detached() {
			c.finish(b, r)
		}
	}()
	r = b.serve()
}

// finish answers what was served, of which nothing is left to do.
func (c *Conn) finish(b *batch, r Reply) {
	defer c.work.done()
	defer b.served()
	c.answer(r)
}

func (c *Conn) answer(r Reply) {
	if !r.Frame.IsZero() && errors.Is(c.origin.emit(r.Frame), ErrQueueFull) {
		// The transport that fails to send otherwise ends the connection.
		_ = c.origin.emit(r.WithoutRoom().Frame)
	}
	if r.Final {
		c.work.end()
	}
}

func (c *Conn) rejectBatch(b *batch) {
	for i := range b.pending {
		if m := &b.pending[i].message; !m.isResponse() && !m.isNotification() {
			c.answer(refuse(m.id, draining()))
		}
	}
}

// follow takes note of what changes for a legacy client, and tells it once tell
// is called, until the connection ends.
func (c *Conn) startFeed(ctx context.Context, n *session) (tell func()) {
	if !c.work.add() {
		return func() {}
	}
	changes, b, send := c.server.notifier, newSignal(), c.origin.emit
	n.feed.wake = b.notify
	changes.listen(ctx, &n.feed, c.server.sessionCaller(c.origin.peer, n), everyKind, n.lastSeen())
	return func() {
		pulse := c.heartbeat(n)
		pulse.start()
		go func() {
			defer c.work.done()
			defer pulse.stop()
			defer changes.remove(&n.feed)
			_ = changes.forward(ctx, &n.feed, b, c.work.ending, notices.legacyFrames, send)
		}()
	}
}

// heartbeat returns that of a legacy client; one that is given up is at its
// end, so that the transport closes the connection.
func (c *Conn) heartbeat(n *session) *heartbeat {
	return &heartbeat{
		every: c.server.options.Ping, received: &n.received,
		busy: func() bool { return c.calls.len() > 0 },
		ping: func(f Frame) {
			if c.work.add() {
				defer c.work.done()
				// The transport that fails to send ends the connection.
				_ = c.origin.emit(f)
			}
		},
		lost: func() {
			c.server.options.Logger.Info("a client does not answer pings: its connection ends", "client", n.client)
			c.work.end()
		},
	}
}

// sessionCaller returns who listens to what a session is told.
func (s *Server) sessionCaller(p Peer, n *session) identity.Caller {
	claim, refused := AgentFromHeaders(p.Headers)
	if refused != nil {
		claim = AgentClaim{}
	}
	agent, err := claim.Of(&p.Principal, n.client)
	if err != nil {
		// Each call is refused; what is told meanwhile is for the agent that is proved.
		agent, _ = new(AgentClaim).Of(&p.Principal, n.client)
	}
	return identity.Caller{Principal: p.Principal, Agent: agent, Source: p.Source}
}
