package mcp

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mcpd/mcpd/identity"
)

// Conn is one client on a connection that carries messages both ways, in order,
// such as stdio, a WebSocket, or HTTP+SSE. It serves both eras at once.
type Conn struct {
	// fixed at creation
	server *Server
	work   *drainGroup
	pool   pool // serves messages of [Conn.Receive] and [Conn.Deliver]
	calls  inflight
	silent atomic.Bool // the client did not answer a ping

	// origin is the origin of the next message; only Receive accesses it.
	origin origin
}

// ErrQueueFull reports that the queue of a client has no room for a frame until
// the client reads earlier frames.
var ErrQueueFull = errors.New("there is no room for the message")

// Connect adds a client. send sends one whole frame; it is called concurrently.
// send returns an error if the client is gone, and [ErrQueueFull] if it has no
// room for the frame: a short error response replaces the frame then. The
// caller must call [Conn.Close] at the end. Connect returns nil while the
// server drains.
func (s *Server) Connect(p Peer, send func(Frame) error) *Conn {
	if !s.work.add() {
		return nil
	}
	c := &Conn{server: s, work: newDrainGroup()}
	c.pool = pool{serve: c.serve, done: c.work.idle, next: make(chan *batch)}
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

// Receive handles the next text from the client: one message, or a batch. Slow
// requests run in their own goroutine, so that Receive returns soon. ctx is the
// context of the connection and ends with it. The connection owns the text
// until it calls served, which may be nil. Receive must not be called
// concurrently.
func (c *Conn) Receive(ctx context.Context, text []byte, served func()) {
	if b := c.take(ctx, text, served); b != nil {
		c.pool.start(b)
	}
}

// Deliver is [Conn.Receive] for a text that arrived on a side channel. If the
// text cannot be accepted, the returned reply is for the side channel;
// otherwise it is zero. Calls run for the sender, for whom [Conn.BelongsTo]
// must return true, because another credential of the same principal may have
// fewer rights. The claim in the sender's headers is merged with the claim of
// the connection.
func (c *Conn) Deliver(ctx context.Context, sender Peer, text []byte, served func()) Reply {
	b, f := c.receive(ctx, &sender, text, served)
	if f != nil {
		if b != nil {
			b.served()
		}
		return refuse(nil, f)
	}
	if b != nil {
		c.pool.start(b)
	}
	return Reply{}
}

// take handles the next text and answers it. If the text may take long, take
// returns the batch to serve instead.
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

// receive parses and accepts the next text of a sender. It returns the batch if
// serving it may take long. The fault concerns the text as a whole. A fault
// with a batch means that the connection is ending.
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
		// A client that has the response to initialize is notified of every later
		// change.
		if b.origin.session == nil && c.origin.session != nil {
			defer c.startFeed(ctx, c.origin.session)()
		}
		c.answer(r)
	}
	return nil, f
}

// Reject answers a text that the transport could not accept, such as a text
// that is too long to be read.
func (c *Conn) Reject(reason string) {
	c.answer(refuse(nil, malformed(reason)))
}

// BelongsTo reports whether the client has authenticated as the principal.
func (c *Conn) BelongsTo(p identity.Principal) bool { return samePrincipal(c.origin.peer.Principal, p) }

// End rejects new requests, because the input has ended or the transport is
// stopping. Running calls continue.
func (c *Conn) End() { c.work.end() }

// Ending returns a channel that is closed when new requests are rejected.
func (c *Conn) Ending() <-chan struct{} { return c.work.ending }

// errSilent is the error of a client that does not answer a ping.
var errSilent = errors.New("the client did not answer a ping")

// Err returns why new requests are rejected, if the client is the reason; otherwise nil.
func (c *Conn) Err() error {
	if c.silent.Load() {
		return errSilent
	}
	return nil
}

// Done returns a channel that is closed when the connection may be closed: new
// requests are rejected, and none is running.
func (c *Conn) Done() <-chan struct{} { return c.work.idle }

// Close ends the connection, waits for running requests, and removes the client
// from the server. If the connection was lost, its context should have ended
// before.
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

// finish answers a batch after all its requests have ended.
func (c *Conn) finish(b *batch, r Reply) {
	defer c.work.done()
	defer b.served()
	c.answer(r)
}

func (c *Conn) answer(r Reply) {
	if !r.Frame.IsZero() && errors.Is(c.origin.emit(r.Frame), ErrQueueFull) {
		// After any other send error the transport ends the connection.
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

// startFeed records changes for a legacy client. After start is called, it sends
// their notifications until the connection ends.
func (c *Conn) startFeed(ctx context.Context, sess *session) (start func()) {
	if !c.work.add() {
		return func() {}
	}
	changes, b, send := c.server.notifier, newSignal(), c.origin.emit
	sess.feed.wake = b.notify
	changes.listen(ctx, &sess.feed, c.server.sessionCaller(c.origin.peer, sess), everyKind, sess.lastSeen())
	return func() {
		pulse := c.heartbeat(sess)
		pulse.start()
		go func() {
			defer c.work.done()
			defer pulse.stop()
			defer changes.remove(&sess.feed)
			_ = changes.forward(ctx, &sess.feed, b, c.work.ending, notices.legacyFrames, send)
		}()
	}
}

// heartbeat returns the heartbeat of a legacy client. If the client does not
// answer, the connection ends and the transport closes it.
func (c *Conn) heartbeat(sess *session) *heartbeat {
	return &heartbeat{
		every: c.server.options.Ping, received: &sess.received,
		busy: func() bool { return c.calls.len() > 0 },
		ping: func(f Frame) {
			if c.work.add() {
				defer c.work.done()
				// After a send error the transport ends the connection.
				_ = c.origin.emit(f)
			}
		},
		lost: func() {
			c.server.options.Logger.Info("close connection without ping response", "client", sess.client)
			c.silent.Store(true)
			c.work.end()
		},
	}
}

// sessionCaller returns the caller that receives the notifications of a
// session.
func (s *Server) sessionCaller(p Peer, sess *session) identity.Caller {
	claim, invalid := AgentFromHeaders(p.Headers)
	if invalid != nil {
		claim = AgentClaim{}
	}
	agent, err := claim.Of(&p.Principal, sess.client)
	if err != nil {
		// Each call is rejected; notifications are for the authenticated agent.
		agent, _ = new(AgentClaim).Of(&p.Principal, sess.client)
	}
	return identity.Caller{Principal: p.Principal, Agent: agent, Source: p.Source}
}
