package streamable

import (
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

var errFinished = errors.New("the stream has ended")

const (
	// maxBehind is how many bytes a connection may be behind before what is
	// sent waits for it.
	maxUnsentBytes = 256 << 10
	// maxStream bounds the events that one stream keeps, in bytes.
	maxStreamBytes = 1 << 20
)

// stream is a stream of events of a legacy session. It outlives the
// connections that carry it, one at a time: what comes while there is none
// waits for the next. The events are numbered from 1; 0 is the event that
// tells the client how to come back.
type stream struct {
	// fixed at creation
	id      string
	session string
	events  *eventStore
	// primes says that the client knows the event 0.
	sendsRetry bool
	// abandon ends what the stream is the answer to, once nobody comes back
	// within the time.
	onAbandoned   func()
	resumeTimeout time.Duration

	// carried says that a connection carries the stream.
	attached atomic.Bool

	mu           sync.Mutex
	caughtUp     sync.Cond // the connection is not behind any more, or gone
	buffer       []mcp.Frame
	first        int  // the number of kept[0]
	bytes        int  // of what is kept
	sent         int  // the number of the last event that a connection has carried
	unsentBytes  int  // the bytes of the events after it
	opened       bool // there was an event, or the connection was closed for now
	done         bool // no more events come
	reply        mcp.Reply
	conn         *streamConn
	abandonTimer *time.Timer // of abandon; nil while a connection carries the stream
}

// newStream returns a stream that nothing was sent on: of kind "p" when it is
// the answer to a POST, "g" when it carries what the server tells of its own
// accord.
func (h *handler) newStream(kind, session, version string, abandon func()) *stream {
	s := &stream{
		id: kind + rand.Text(), session: session, events: h.events, first: 1,
		sendsRetry: version >= retryEventVersion, onAbandoned: abandon, resumeTimeout: h.options.ResumeTimeout,
	}
	s.caughtUp.L = &s.mu
	return s
}

// eventID returns the id of an event, which names the stream (2025-11-25
// basic/transports, Resumability and Redelivery).
func (s *stream) eventID(number int) string { return s.id + "_" + strconv.Itoa(number) }

// send adds an event. It waits for a connection that is far behind, as long as
// that is there.
func (s *stream) send(f mcp.Frame) error {
	s.mu.Lock()
	for s.conn != nil && s.unsentBytes > maxUnsentBytes {
		s.caughtUp.Wait()
	}
	s.mu.Unlock()
	return s.put(f)
}

// put adds an event at once.
func (s *stream) put(f mcp.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return errFinished
	}
	if c := s.conn; c != nil && !c.hold.Take(cost(f)) {
		c.drop()
	}
	s.add(f)
	s.wake()
	return nil
}

// add keeps an event, and forgets the oldest ones when there are too many,
// except for those that a connection has yet to carry, which has taken room for them; mu
// is held.
func (s *stream) add(f mcp.Frame) {
	s.opened = true
	s.buffer = append(s.buffer, f)
	s.unsentBytes += cost(f)
	s.bytes += cost(f)
	for s.bytes > maxStreamBytes && len(s.buffer) > 1 && (s.conn == nil || s.first <= s.sent) {
		if s.bytes -= cost(s.buffer[0]); s.first > s.sent {
			s.unsentBytes -= cost(s.buffer[0])
		}
		s.buffer[0] = mcp.Frame{}
		s.buffer, s.first = s.buffer[1:], s.first+1
	}
	s.events.touch(s, s.bytes)
}

func cost(f mcp.Frame) int { return f.Len() + eventCost }

// finish ends the stream with the reply to what it is the answer to.
func (s *stream) finish(r mcp.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened && !r.Frame.IsZero() {
		if c := s.conn; c != nil && !c.hold.Take(cost(r.Frame)) && !c.hold.Lost() {
			if r = r.WithoutRoom(); !c.hold.Take(cost(r.Frame)) {
				c.drop()
			}
		}
		s.add(r.Frame)
	}
	s.done, s.reply = true, r
	if s.abandonTimer != nil {
		s.abandonTimer.Stop()
	}
	s.wake()
}

// close closes the connection that carries the stream, which goes on without
// one until the client comes back.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.done {
		s.opened = true
		s.conn.close()
	}
}

// wake wakes the connection; mu is held.
func (s *stream) wake() {
	if s.conn != nil {
		s.conn.wake()
	}
}

// attach has a connection carry the stream from an event on, in place of any
// other. False means that events from there on are not kept any more.
func (s *stream) attach(c *streamConn, after int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after+1 < s.first || after >= s.first+len(s.buffer) {
		return false
	}
	if s.conn != nil {
		s.conn.close()
	}
	if s.abandonTimer != nil {
		s.abandonTimer.Stop()
		s.abandonTimer = nil
	}
	s.conn, s.sent, s.unsentBytes = c, after, 0
	for _, f := range s.buffer[after+1-s.first:] {
		s.unsentBytes += cost(f)
	}
	if !c.hold.Take(s.unsentBytes) {
		c.drop()
	}
	s.attached.Store(true)
	return true
}

// detach takes note that a connection is gone. What the stream is the answer
// to ends when nobody comes back in time, and at once when nobody can.
func (s *stream) detach(c *streamConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn = nil
	s.attached.Store(false)
	s.caughtUp.Broadcast()
	switch {
	case s.done:
	case s.opened:
		s.events.touch(s, s.bytes)
		s.abandonTimer = time.AfterFunc(s.resumeTimeout, s.onAbandoned)
	default:
		s.onAbandoned()
	}
}

// next returns the events that the connection has to carry next, and whether
// they are the last; ok is false when some are not kept any more, or another
// connection carries the stream.
func (s *stream) next(c *streamConn) (frames []mcp.Frame, done, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	skip := s.sent + 1 - s.first
	if s.conn != c || skip < 0 {
		return nil, false, false
	}
	return append(frames, s.buffer[skip:]...), s.done, true
}

// plain returns the reply, when there was no event before it that it followed.
func (s *stream) soleReply() (r mcp.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return r
	}
	return s.reply
}

// carry takes note that the connection has carried the next event.
func (s *stream) markSent(c *streamConn, f mcp.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	c.hold.Release(cost(f))
	if s.sent++; s.sent >= s.first {
		s.unsentBytes -= cost(f)
	}
	if s.unsentBytes <= maxUnsentBytes {
		s.caughtUp.Broadcast()
	}
	if s.events.isFull(s.session) {
		s.dropSent()
	}
}

// forgetCarried forgets the events that a connection has carried; mu is held.
func (s *stream) dropSent() {
	if s.first > s.sent {
		return
	}
	for s.first <= s.sent && len(s.buffer) > 0 {
		s.bytes -= cost(s.buffer[0])
		s.buffer[0] = mcp.Frame{}
		s.buffer, s.first = s.buffer[1:], s.first+1
	}
	s.events.touch(s, s.bytes)
}
