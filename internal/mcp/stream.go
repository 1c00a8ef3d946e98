package mcp

import (
	"context"
	"slices"
)

// maxStreams bounds the open streams of one session.
const maxStreams = 8

// Stream carries what the server tells a legacy session of its own accord
// (2025-11-25 basic/transports, Listening for Messages from the Server). Of
// several streams of a session the newest carries it.
type Stream struct {
	server  *Server
	session *session
	bell    bell
}

// OpenStream opens a stream for the session of the peer. When the refusal is
// not [Served], there is no stream. [Stream.Close] must be called in the end.
func (s *Server) OpenStream(ctx context.Context, p Peer, id string) (*Stream, Refusal) {
	if !s.work.begin() {
		return nil, Unavailable
	}
	session := s.sessions.find(id, p.Principal)
	if session == nil {
		s.work.done()
		return nil, UnknownSession
	}
	st := &Stream{server: s, session: session, bell: newBell()}
	if !session.attach(st) {
		s.work.done()
		return nil, Unavailable
	}
	s.changes.listen(ctx, &session.feed, s.sessionCaller(p, session), everyKind, session.lastSeen())
	return st, Served
}

// Wake has a value when [Stream.Take] may have something.
func (st *Stream) Wake() <-chan struct{} { return st.bell }

// Ended is closed when the session has ended. When [Server.Draining] is closed,
// nothing more will come either.
func (st *Stream) Ended() <-chan struct{} { return st.session.ended }

// Take returns what there is to send now, which no other stream sends then.
func (st *Stream) Take() []Frame {
	if !st.session.isNewest(st) {
		return nil
	}
	return st.server.changes.take(&st.session.feed).frames(nil)
}

// Close takes the stream off the session.
func (st *Stream) Close() {
	st.session.detach(st)
	st.server.changes.mute(&st.session.feed)
	st.server.work.done()
}

// attach adds a stream; false means that there are too many.
func (s *session) attach(st *Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= maxStreams {
		return false
	}
	s.streams = append(s.streams, st)
	st.bell.ring()
	return true
}

// detach takes out a stream and has the newest of the others take over.
func (s *session) detach(st *Stream) {
	s.mu.Lock()
	s.streams = slices.DeleteFunc(s.streams, func(other *Stream) bool { return other == st })
	s.mu.Unlock()
	s.wake()
}

// wake wakes the stream that carries messages: each is sent once (2025-11-25
// basic/transports, Multiple Connections). Without one they wait for it.
func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.streams); n > 0 {
		s.streams[n-1].bell.ring()
	}
}

// isNewest reports whether the stream is the one that carries messages.
func (s *session) isNewest(st *Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 && s.streams[len(s.streams)-1] == st
}
