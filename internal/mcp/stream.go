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
	feed    *feed
}

// OpenStream opens a stream for the session of the peer. When the refusal is
// not [Served], there is no stream. [Stream.Run] must be called.
func (s *Server) OpenStream(ctx context.Context, p Peer, id string) (*Stream, Refusal) {
	if !s.work.begin() {
		return nil, Unavailable
	}
	session := s.sessions.find(id, p.Principal)
	if session == nil {
		s.work.done()
		return nil, UnknownSession
	}
	f := s.changes.add(ctx, s.sessionCaller(p, session), session.lastSeen())
	if !session.attach(f) {
		s.changes.remove(f)
		s.work.done()
		return nil, Unavailable
	}
	return &Stream{server: s, session: session, feed: f}, Served
}

// Run sends what there is to tell until ctx ends, the session ends, the server
// drains or send fails. send is called from this goroutine.
func (st *Stream) Run(ctx context.Context, send func(Frame) error) {
	defer st.server.work.done()
	defer st.server.changes.remove(st.feed)
	defer st.session.detach(st.feed)
	over := either{st.server.work.ending, st.session.ended}
	_ = st.feed.follow(ctx, over, func() error {
		if !st.session.isNewest(st.feed) {
			return nil
		}
		return send(notification(toolsChanged, nil))
	})
}

// either holds two channels of which one is closed in the end.
type either [2]<-chan struct{}

// follow calls tell at each change, until one of over is closed, and returns
// nil then. When ctx ends or tell fails first, follow returns that error.
func (f *feed) follow(ctx context.Context, over either, tell func() error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over[0]:
			return nil
		case <-over[1]:
			return nil
		case <-f.tools:
			if err := tell(); err != nil {
				return err
			}
		}
	}
}

// attach adds a stream; false means that there are too many.
func (s *session) attach(f *feed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= maxStreams {
		return false
	}
	s.streams = append(s.streams, f)
	return true
}

func (s *session) detach(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(other *feed) bool { return other == f })
}

// isNewest reports whether the stream is the one that carries messages: each
// is sent once (2025-11-25 basic/transports, Multiple Connections).
func (s *session) isNewest(f *feed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 && s.streams[len(s.streams)-1] == f
}
