package mcp

import (
	"context"
	"net/http"
)

// Exchange is what comes with a text that is answered where it came in, such
// as the body of an HTTP request.
type Exchange struct {
	Peer Peer
	// Session is the session id that the client repeats; empty for none.
	Session string
	// Emit sends what precedes the answer, and returns an error when the
	// client is gone. It is called from many goroutines, and not any more
	// once [Server.Exchange] has returned. Nil when the client takes nothing
	// before the answer.
	Emit func(Frame) error
	// CloseStream closes the connection that carries what Emit sends, while the
	// client comes back for the rest. Nil where that cannot be.
	CloseStream func()
	// Late ends the response when Exchange cannot return in time, and nil has the
	// backend see to it that it always can.
	Late Late
}

// Late ends a response, with the reply, while the goroutine of
// [Server.Exchange] is held, which then returns nothing of it.
type Late interface{ Late(Reply) }

// Exchange serves a text: one message, or a batch. The headers of the peer
// mirror the message. ctx ends when the client is gone. The text is not
// changed, and not used any more afterwards.
func (s *Server) Exchange(ctx context.Context, text []byte, x Exchange) Reply {
	if !s.work.begin() {
		return refuse(nil, draining())
	}
	var b *batch
	defer func() {
		if b == nil || !b.left() {
			s.work.done()
		}
	}()
	parsed, f := parse(text, s.options.Limits)
	if f != nil {
		return refuse(nil, f)
	}
	o := s.exchangeOrigin(x)
	// A single request is held to the same by admit.
	if first := &parsed.pending[0]; parsed.isBatch || first.isNotification() || first.isResponse() {
		if r, ok := RefuseVersion(o.peer.Headers); !ok {
			return r
		}
		if o.lost() {
			return refuse(nil, unknownSession())
		}
		if !parsed.isBatch && o.session == nil && first.bad == nil && first.isResponse() {
			return refuse(nil, malformed("a response needs the session on which it was asked for"))
		}
	}
	if f = s.accept(ctx, o, parsed); f != nil {
		return refuse(nil, f)
	}
	b = parsed
	if o.late != nil {
		b.mayEndLate()
	}
	return b.serve()
}

func (s *Server) exchangeOrigin(x Exchange) origin {
	o := origin{peer: x.Peer, mirrored: true, sessionID: x.Session, emit: x.Emit, closeStream: x.CloseStream, late: x.Late, ending: s.work.ending}
	if o.peer.Headers == nil {
		o.peer.Headers = http.Header{}
	}
	if x.Session != "" {
		if o.session = s.sessions.find(x.Session, x.Peer.Principal); o.session != nil {
			o.calls = &o.session.calls
		}
	}
	return o
}

// EndSession ends the session of the principal (2025-11-25 basic/transports,
// Session Management); false means that there is none.
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
