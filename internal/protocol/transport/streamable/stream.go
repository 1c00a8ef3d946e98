package streamable

import (
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

var errFinished = errors.New("the stream has ended")

const (
	// maxUnsentBytes is the number of unsent bytes above which send blocks.
	maxUnsentBytes = 256 << 10
	// maxStreamBytes bounds the stored events of one stream, in bytes.
	maxStreamBytes = 1 << 20
)

// stream is an event stream of a legacy session. It outlives its connections;
// at most one is attached at a time. Without one, events wait for the next.
// Events are numbered from 1; event 0 has the data for resuming.
type stream struct {
	// fixed at creation
	id      string
	session string
	events  *eventStore
	// sendsRetry is true if the client supports event 0.
	sendsRetry bool
	// onAbandoned ends the request of the stream if no client reconnects within
	// resumeTimeout.
	onAbandoned   func()
	resumeTimeout time.Duration

	// attached is true if a connection carries the stream.
	attached atomic.Bool

	mu           sync.Mutex
	caughtUp     sync.Cond // the connection has caught up or is gone
	buffer       []mcp.Frame
	first        int  // the number of buffer[0]
	bytes        int  // of the buffer
	sent         int  // the number of the last sent event
	unsentBytes  int  // the bytes of later events
	opened       bool // there was an event, or the connection was closed temporarily
	done         bool // no more events will come
	reply        mcp.Reply
	conn         *streamConn
	abandonTimer *time.Timer // calls onAbandoned; nil while a connection is attached
}

// The id of a stream starts with its kind.
const (
	responding = "p" // the response to a POST
	listening  = "g" // the notifications of a session
)

// isListening reports whether the id of a stream or of an event belongs to a listening stream.
func isListening(id string) bool { return strings.HasPrefix(id, listening) }

// newStream returns an empty stream.
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

// send adds an event. It blocks while an attached connection has too many
// unsent bytes.
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

// add stores an event, and drops the oldest ones over the limit, except for
// unsent events of an attached connection, which has reserved budget for them.
// The caller holds mu.
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

// finish ends the stream with the reply to its request.
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

// close closes the attached connection. The stream continues until the client
// reconnects.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.done {
		s.opened = true
		s.conn.close()
	}
}

// wake wakes the connection. The caller holds mu.
func (s *stream) wake() {
	if s.conn != nil {
		s.conn.wake()
	}
}

// attach attaches a connection from an event on, and replaces any other. It
// returns false if those events are no longer stored.
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

// detach removes a connection. The request of the stream is abandoned if no
// client reconnects in time, and at once if none can.
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

// next returns the events to send next, and whether they are the last. ok is
// false if some are no longer stored, or if another connection is attached.
func (s *stream) next(c *streamConn) (frames []mcp.Frame, done, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	skip := s.sent + 1 - s.first
	if s.conn != c || skip < 0 {
		return nil, false, false
	}
	return append(frames, s.buffer[skip:]...), s.done, true
}

// soleReply returns the reply if no event precedes it.
func (s *stream) soleReply() (r mcp.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return r
	}
	return s.reply
}

// markSent records that the connection has sent the next event.
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

// dropSent drops the events that a connection has sent. The caller holds mu.
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
