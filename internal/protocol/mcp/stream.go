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

// Stream carries the server's notifications and requests to a legacy session
// (2025-11-25 basic/transports, Listening for Messages from the Server). If a
// session has several streams, the newest carries them.
type Stream struct {
	server    *Server
	session   *session
	wakeup    signal
	heartbeat heartbeat

	mu           sync.Mutex
	pendingPing  []Frame // ping to send
	unresponsive bool    // the client does not answer pings
}

// OpenStream opens a stream for the session of the peer. If the refusal is not
// [Served], the stream is nil. The caller must call [Stream.Close] at the end.
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

// Wake returns a channel that has a value when [Stream.Take] may return frames.
func (st *Stream) Wake() <-chan struct{} { return st.wakeup }

// Ended returns a channel that is closed when the session ends. After
// [Server.Draining] is closed, no more frames come either.
func (st *Stream) Ended() <-chan struct{} { return st.session.ended }

// Take returns the frames to send now; no other stream sends them. ok is false
// if the client does not answer pings.
func (st *Stream) Take() (frames []Frame, ok bool) {
	if st.session.isNewest(st) {
		frames = st.server.notifier.take(&st.session.feed).legacyFrames()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	frames, st.pendingPing = append(frames, st.pendingPing...), nil
	return frames, !st.unresponsive
}

// sendPing queues a ping and replaces an earlier one.
func (st *Stream) sendPing(f Frame) {
	st.mu.Lock()
	st.pendingPing = []Frame{f}
	st.mu.Unlock()
	st.wakeup.notify()
}

func (st *Stream) terminate() {
	st.server.options.Logger.Info("close stream without ping response", "client", st.session.client)
	st.mu.Lock()
	st.unresponsive = true
	st.mu.Unlock()
	st.wakeup.notify()
}

// Close removes the stream from the session.
func (st *Stream) Close() {
	st.heartbeat.stop()
	st.session.detach(st)
	st.server.notifier.unlisten(&st.session.feed)
	st.server.work.done()
}

// attach adds a stream. It returns false if there are too many.
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

// detach removes a stream; the newest of the others takes over.
func (s *session) detach(st *Stream) {
	s.mu.Lock()
	s.streams = slices.DeleteFunc(s.streams, func(other *Stream) bool { return other == st })
	s.mu.Unlock()
	s.wake()
}

// wake wakes the stream that carries messages: each is sent once (2025-11-25
// basic/transports, Multiple Connections). Without a stream they stay pending.
func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.streams); n > 0 {
		s.streams[n-1].wakeup.notify()
	}
}

// isNewest reports whether the stream carries messages.
func (s *session) isNewest(st *Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 && s.streams[len(s.streams)-1] == st
}

// maxMissedPings is the number of pings that a peer may leave unanswered.
const maxMissedPings = 2

// heartbeat pings a legacy peer while it is idle (2025-11-25
// basic/utilities/ping), and reports it as lost after two unanswered pings. A
// peer that sends messages or waits for a response is not idle.
type heartbeat struct {
	// fixed at creation
	every    time.Duration
	received *atomic.Uint64 // counts the peer's messages
	busy     func() bool
	ping     func(Frame)
	lost     func()

	mu      sync.Mutex
	timer   *time.Timer
	last    uint64 // last value of received
	missed  int
	stopped bool
}

// start starts the heartbeat; the caller must call stop at the end. It does
// nothing if the interval is negative.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.received.Load()
	if h.every > 0 {
		h.timer = time.AfterFunc(h.every, h.tick)
	}
}

// stop stops the heartbeat. A ping may still be in progress.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// tick checks the peer once per interval.
func (h *heartbeat) tick() {
	switch ping, lost := h.checkInterval(); {
	case lost:
		h.lost()
	case ping:
		h.ping(requestFrame(rand.Text(), &call.AskRequest{Method: "ping"}, ""))
	}
}

// checkInterval evaluates the interval that ends now, and starts the next.
func (h *heartbeat) checkInterval() (ping, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false, false
	}
	if received := h.received.Load(); received != h.last || h.busy() {
		h.last, h.missed = received, 0
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
