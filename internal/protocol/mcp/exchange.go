package mcp

import (
	"context"
	"net/http"
	"sync"
)

// Exchange holds the parameters of one text that is answered where it arrived,
// such as the body of an HTTP request.
type Exchange struct {
	Peer Peer
	// Session is the session id that the client sent; empty for none.
	Session string
	// Emit sends what precedes the response, and returns an error if the client
	// is gone. It is called concurrently, and never after [Server.Exchange]
	// returns. It is nil if the client accepts nothing before the response.
	Emit func(Frame) error
	// CloseStream closes the connection that carries the frames of Emit; the
	// client reconnects for the rest. It is nil if the client cannot reconnect.
	CloseStream func()
	// Detached ends the response if Exchange cannot return in time. If it is nil,
	// the backend makes sure that Exchange always returns in time.
	Detached DetachedResponse
}

// DetachedResponse ends a response with the reply while the goroutine of
// [Server.Exchange] is still blocked. Exchange then returns an empty reply.
type DetachedResponse interface{ Finish(Reply) }

// Exchange serves a text: one message, or a batch. The headers of the peer
// mirror the message. ctx ends when the client is gone. Exchange does not
// modify the text, and does not use it after it returns.
func (s *Server) Exchange(ctx context.Context, text []byte, x Exchange) Reply {
	if !s.work.add() {
		return refuse(nil, draining())
	}
	var b *batch
	defer func() {
		if b == nil || !b.detached() {
			s.work.done()
		}
	}()
	parsed, f := parse(text, s.options.Limits)
	if f != nil {
		return refuse(nil, f)
	}
	o := origin{peer: x.Peer, mirrored: true, sessionID: x.Session, emit: x.Emit, closeStream: x.CloseStream, detached: x.Detached, ending: s.work.ending}
	if o.peer.Headers == nil {
		o.peer.Headers = http.Header{}
	}
	if x.Session != "" {
		if o.session = s.sessions.find(x.Session, x.Peer.Principal); o.session != nil {
			o.calls = &o.session.calls
		}
	}
	// For a single request, admit makes the same checks.
	if first := &parsed.pending[0]; parsed.isBatch || first.isNotification() || first.isResponse() {
		if r, ok := CheckVersion(o.peer.Headers); !ok {
			return r
		}
		if o.lost() {
			return refuse(nil, unknownSession())
		}
		if !parsed.isBatch && o.session == nil && first.bad == nil && first.isResponse() {
			return refuse(nil, malformed("a response needs the session of its request"))
		}
	}
	if f = s.accept(ctx, o, parsed); f != nil {
		return refuse(nil, f)
	}
	b = parsed
	if o.detached != nil {
		b.allowDetach()
	}
	return b.serve()
}

// EndSession ends the session of the principal (2025-11-25 basic/transports,
// Session Management). It returns false if there is none.
func (s *Server) EndSession(p Peer, id string) bool {
	n := s.sessions.find(id, p.Principal)
	if n == nil {
		return false
	}
	s.sessions.remove(n)
	return true
}

func unknownSession() *fault {
	return newFault(codeInvalidRequest, UnknownSession, "unknown session: initialize anew, without a session id")
}

func draining() *fault {
	return newFault(codeInternal, Unavailable, "the server is shutting down")
}

// batch holds the messages of one text: one message, or several with one reply.
type batch struct {
	origin  origin
	isBatch bool
	pending []pending
	replies []Reply // replies to messages that do not wait; nil if all wait
	served  func()  // called when the text is no longer needed, on a connection
	// single is the storage for one message, which most texts hold.
	single [1]pending
}

func (b *batch) setReply(i int, r Reply) {
	if b.replies == nil {
		b.replies = make([]Reply, len(b.pending))
	}
	b.replies[i] = r
}

func (b *batch) slow() bool {
	for i := range b.pending {
		if p := &b.pending[i]; p.waits && p.handler.slow {
			return true
		}
	}
	return false
}

// allowDetach allows the only request of the text to be answered detached.
func (b *batch) allowDetach() {
	if !b.isBatch {
		b.pending[0].batch = b
	}
}

// detached reports whether the only request was answered detached. Its
// goroutine must not answer it again.
func (b *batch) detached() bool { return !b.isBatch && b.pending[0].detached }

// answerDetached answers the only request while its goroutine is blocked.
func (b *batch) answerDetached(r *result, f *fault) {
	p := &b.pending[0]
	reply := p.reply(r, f)
	p.end()
	if conn := b.origin.conn; conn != nil {
		conn.finish(b, reply)
		return
	}
	defer p.server.work.done()
	b.origin.detached.Finish(reply)
}

// serve serves all pending requests concurrently and returns the one reply.
func (b *batch) serve() Reply {
	if !b.isBatch {
		switch p := &b.pending[0]; {
		case p.waits:
			return p.serve()
		case b.replies == nil:
			return Reply{}
		}
		return b.replies[0]
	}
	var all sync.WaitGroup
	for i := range b.pending {
		if p := &b.pending[i]; p.waits {
			all.Go(func() { b.replies[i] = p.serve() })
		}
	}
	all.Wait()
	return b.join()
}

// join joins the responses into one array, in the order of the messages.
func (b *batch) join() Reply {
	var joined Reply
	text := []byte{'['}
	for _, r := range b.replies {
		joined.Final = joined.Final || r.Final
		if r.Frame.IsZero() {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = r.Frame.Append(text)
	}
	if len(text) > 1 {
		joined.Frame = Frame{head: append(text, ']')}
	}
	return joined
}
