package mcp

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
)

// maxStreams bounds the open streams of one session.
const maxStreams = 8

// Stream carries what the server tells a legacy session of its own accord
// (2025-11-25 basic/transports, Listening for Messages from the Server). Of
// several streams of a session the newest carries it.
type Stream struct {
	server    *Server
	session   *session
	wakeup    signal
	heartbeat heartbeat

	mu           sync.Mutex
	pendingPing  []Frame // that is to be sent
	unresponsive bool    // the client does not answer pings
}

// OpenStream opens a stream for the session of the peer. When the refusal is
// not [Served], there is no stream. [Stream.Close] must be called in the end.
func (s *Server) OpenStream(ctx context.Context, p Peer, id string) (*Stream, Refusal) {
	if !s.work.add() {
		return nil, Unavailable
	}
	session := s.sessions.find(id, p.Principal)
	if session == nil {
		s.work.done()
		return nil, UnknownSession
	}
	st := &Stream{server: s, session: session, wakeup: newSignal()}
	if !session.attach(st) {
		s.work.done()
		return nil, Unavailable
	}
	s.notifier.listen(ctx, &session.feed, s.sessionCaller(p, session), everyKind, session.lastSeen())
	st.heartbeat = heartbeat{
		every: s.options.Ping, received: &session.received,
		busy: func() bool { return session.calls.len() > 0 },
		ping: st.sendPing, lost: st.terminate,
	}
	st.heartbeat.start()
	return st, Served
}

// Wake has a value when [Stream.Take] may have something.
func (st *Stream) Wake() <-chan struct{} { return st.wakeup }

// Ended is closed when the session has ended. When [Server.Draining] is closed,
// nothing more will come either.
func (st *Stream) Ended() <-chan struct{} { return st.session.ended }

// Take returns what there is to send now, which no other stream sends then;
// false when nobody reads it, since the client does not answer pings.
func (st *Stream) Take() (frames []Frame, ok bool) {
	if st.session.isNewest(st) {
		frames = st.server.notifier.take(&st.session.feed).legacyFrames()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	frames, st.pendingPing = append(frames, st.pendingPing...), nil
	return frames, !st.unresponsive
}

// sendPing has a ping sent, in place of one that was not taken yet.
func (st *Stream) sendPing(f Frame) {
	st.mu.Lock()
	st.pendingPing = []Frame{f}
	st.mu.Unlock()
	st.wakeup.notify()
}

func (st *Stream) terminate() {
	st.server.options.Logger.Info("a client does not answer pings: its stream ends", "client", st.session.client)
	st.mu.Lock()
	st.unresponsive = true
	st.mu.Unlock()
	st.wakeup.notify()
}

// Close takes the stream off the session.
func (st *Stream) Close() {
	st.heartbeat.stop()
	st.session.detach(st)
	st.server.notifier.unlisten(&st.session.feed)
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
	st.wakeup.notify()
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
		s.streams[n-1].wakeup.notify()
	}
}

// isNewest reports whether the stream is the one that carries messages.
func (s *session) isNewest(st *Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 && s.streams[len(s.streams)-1] == st
}

// patientPings is how many pings a peer may leave unanswered.
const maxMissedPings = 2

// heartbeat pings a legacy peer while it is idle (2025-11-25
// basic/utilities/ping), and gives up one that is silent after two pings. A
// peer is not idle while it sends anything at all, or waits for an answer.
type heartbeat struct {
	// fixed at creation
	every    time.Duration
	received *atomic.Uint64 // counts what the peer has sent
	busy     func() bool
	ping     func(Frame)
	lost     func()

	mu      sync.Mutex
	timer   *time.Timer
	last    uint64 // of heard
	missed  int
	stopped bool
}

// start begins to watch the peer; stop must be called in the end. With an
// interval below zero there is nothing to watch.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.received.Load()
	if h.every > 0 {
		h.timer = time.AfterFunc(h.every, h.tick)
	}
}

// stop ends the watch. A ping may be under way yet.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// beat looks at the peer once in an interval.
func (h *heartbeat) tick() {
	switch ping, lost := h.checkInterval(); {
	case lost:
		h.lost()
	case ping:
		h.ping(requestFrame(rand.Text(), &call.AskRequest{Method: "ping"}, ""))
	}
}

// look judges the interval that ends now, and begins the next.
func (h *heartbeat) checkInterval() (ping, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false, false
	}
	if heard := h.received.Load(); heard != h.last || h.busy() {
		h.last, h.missed = heard, 0
	} else if h.missed == maxMissedPings {
		h.stopped = true
		return false, true
	} else {
		h.missed++
		ping = true
	}
	h.timer.Reset(h.every)
	return ping, false
}
