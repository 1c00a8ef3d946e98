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
	maxBehind = 256 << 10
	// maxStream bounds the events that one stream keeps, in bytes.
	maxStream = 1 << 20
)

// stream is a stream of events of a legacy session. It outlives the
// connections that carry it, one at a time: what comes while there is none
// waits for the next. The events are numbered from 1; 0 is the event that
// tells the client how to come back.
type stream struct {
	// fixed at creation
	id      string
	session string
	events  *events
	// primes says that the client knows the event 0.
	primes bool
	// abandon ends what the stream is the answer to, once nobody comes back
	// within the time.
	abandon func()
	within  time.Duration

	// carried says that a connection carries the stream.
	carried atomic.Bool

	mu       sync.Mutex
	caughtUp sync.Cond // the connection is not behind any more, or gone
	kept     []mcp.Frame
	first    int  // the number of kept[0]
	bytes    int  // of what is kept
	sent     int  // the number of the last event that a connection has carried
	behind   int  // the bytes of the events after it
	opened   bool // there was an event, or the connection was closed for now
	done     bool // no more events come
	reply    mcp.Reply
	carrier  *carrier
	waiting  *time.Timer // of abandon; nil while a connection carries the stream
}

// newStream returns a stream that nothing was sent on: of kind "p" when it is
// the answer to a POST, "g" when it carries what the server tells of its own
// accord.
func (h *handler) newStream(kind, session, version string, abandon func()) *stream {
	s := &stream{
		id: kind + rand.Text(), session: session, events: h.events, first: 1,
		primes: version >= primingVersion, abandon: abandon, within: h.options.Resume,
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
	for s.carrier != nil && s.behind > maxBehind {
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
	if c := s.carrier; c != nil && !c.hold.Take(cost(f)) {
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
	s.kept = append(s.kept, f)
	s.behind += cost(f)
	s.bytes += cost(f)
	for s.bytes > maxStream && len(s.kept) > 1 && (s.carrier == nil || s.first <= s.sent) {
		if s.bytes -= cost(s.kept[0]); s.first > s.sent {
			s.behind -= cost(s.kept[0])
		}
		s.kept[0] = mcp.Frame{}
		s.kept, s.first = s.kept[1:], s.first+1
	}
	s.events.use(s, s.bytes)
}

func cost(f mcp.Frame) int { return f.Len() + eventCost }

// finish ends the stream with the reply to what it is the answer to.
func (s *stream) finish(r mcp.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened && !r.Frame.IsZero() {
		if c := s.carrier; c != nil && !c.hold.Take(cost(r.Frame)) && !c.hold.Lost() {
			if r = r.WithoutRoom(); !c.hold.Take(cost(r.Frame)) {
				c.drop()
			}
		}
		s.add(r.Frame)
	}
	s.done, s.reply = true, r
	if s.waiting != nil {
		s.waiting.Stop()
	}
	s.wake()
}

// close closes the connection that carries the stream, which goes on without
// one until the client comes back.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carrier != nil && !s.done {
		s.opened = true
		s.carrier.leave()
	}
}

// wake wakes the connection; mu is held.
func (s *stream) wake() {
	if s.carrier != nil {
		s.carrier.wake()
	}
}

// attach has a connection carry the stream from an event on, in place of any
// other. False means that events from there on are not kept any more.
func (s *stream) attach(c *carrier, after int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after+1 < s.first || after >= s.first+len(s.kept) {
		return false
	}
	if s.carrier != nil {
		s.carrier.leave()
	}
	if s.waiting != nil {
		s.waiting.Stop()
		s.waiting = nil
	}
	s.carrier, s.sent, s.behind = c, after, 0
	for _, f := range s.kept[after+1-s.first:] {
		s.behind += cost(f)
	}
	if !c.hold.Take(s.behind) {
		c.drop()
	}
	s.carried.Store(true)
	return true
}

// detach takes note that a connection is gone. What the stream is the answer
// to ends when nobody comes back in time, and at once when nobody can.
func (s *stream) detach(c *carrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carrier != c {
		return
	}
	s.carrier = nil
	s.carried.Store(false)
	s.caughtUp.Broadcast()
	switch {
	case s.done:
	case s.opened:
		s.events.use(s, s.bytes)
		s.waiting = time.AfterFunc(s.within, s.abandon)
	default:
		s.abandon()
	}
}

// next returns the events that the connection has to carry next, and whether
// they are the last; ok is false when some are not kept any more, or another
// connection carries the stream.
func (s *stream) next(c *carrier) (frames []mcp.Frame, done, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	skip := s.sent + 1 - s.first
	if s.carrier != c || skip < 0 {
		return nil, false, false
	}
	return append(frames, s.kept[skip:]...), s.done, true
}

// plain returns the reply, when there was no event before it that it followed.
func (s *stream) plain() (r mcp.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return r
	}
	return s.reply
}

// carry takes note that the connection has carried the next event.
func (s *stream) carry(c *carrier, f mcp.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carrier != c {
		return
	}
	c.hold.Release(cost(f))
	if s.sent++; s.sent >= s.first {
		s.behind -= cost(f)
	}
	if s.behind <= maxBehind {
		s.caughtUp.Broadcast()
	}
	if s.events.isFull(s.session) {
		s.forgetCarried()
	}
}

// forgetCarried forgets the events that a connection has carried; mu is held.
func (s *stream) forgetCarried() {
	if s.first > s.sent {
		return
	}
	for s.first <= s.sent && len(s.kept) > 0 {
		s.bytes -= cost(s.kept[0])
		s.kept[0] = mcp.Frame{}
		s.kept, s.first = s.kept[1:], s.first+1
	}
	s.events.use(s, s.bytes)
}
