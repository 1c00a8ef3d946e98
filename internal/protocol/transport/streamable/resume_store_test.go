package streamable

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// frame returns a message of about size bytes.
func frame(size int) mcp.Frame { return mcp.Refuse(mcp.Malformed, strings.Repeat("x", size)).Frame }

func newTestStream(e *eventStore, id, session string) *stream {
	s := &stream{id: id, session: session, events: e, first: 1, onAbandoned: func() {}, resumeTimeout: time.Minute}
	s.caughtUp.L = &s.mu
	return s
}

func newTestCarrier() *streamConn {
	return &streamConn{wakeup: make(chan struct{}, 1), closed: make(chan struct{})}
}

func (e *eventStore) has(s *stream) bool {
	found, _ := e.find(s.session, s.id+"_0")
	return found == s
}

func TestEventStore_evictsOldest(t *testing.T) {
	e := newEventStore(time.Hour)
	var all []*stream
	for i := range 6 {
		s := newTestStream(e, "p"+string(rune('a'+i)), "one")
		if i == 1 {
			s.attached.Store(true)
		}
		for range 10 {
			s.add(frame(100 << 10))
		}
		all = append(all, s)
	}
	other := newTestStream(e, "pz", "other")
	other.add(frame(1))
	for i, want := range []bool{false, true, false, true, true, true} {
		if e.has(all[i]) != want {
			t.Errorf("stream %d is stored: %v", i, !want)
		}
	}
	if !e.has(other) || e.bySession["one"] > maxSessionBytes {
		t.Errorf("one session stores %d bytes", e.bySession["one"])
	}
	all[1].attached.Store(false)
	if e.drop("one"); e.bySession["one"] != 0 || e.bytes != e.bySession["other"] || len(e.byID) != 1 {
		t.Errorf("after the session %d bytes are stored in %d streams", e.bytes, len(e.byID))
	}
}

func TestEventStore_maxStoredBytes(t *testing.T) {
	e := newEventStore(time.Hour)
	for i := range 100 {
		s := newTestStream(e, "p"+string(rune('0'+i)), string(rune('0'+i)))
		s.add(frame(1 << 20))
	}
	if e.bytes > maxStoredBytes {
		t.Errorf("%d bytes are stored", e.bytes)
	}
}

// TestEventStore_attachedStreams has connections carry streams that stay open:
// sent events stay within the limits of the store and of a session.
func TestEventStore_attachedStreams(t *testing.T) {
	for _, sessions := range []int{1, 100} {
		e := newEventStore(time.Hour)
		var last *stream
		for i := range 100 {
			s, c := newTestStream(e, "p"+strconv.Itoa(i), strconv.Itoa(i%sessions)), newTestCarrier()
			s.add(frame(1))
			if !s.attach(c, 0) {
				t.Fatal("the stream was not attached")
			}
			for range 20 {
				if err := s.send(frame(50 << 10)); err != nil {
					t.Fatal(err)
				}
				frames, _, _ := s.next(c)
				for _, f := range frames {
					s.markSent(c, f)
				}
			}
			last = s
		}
		if most := min(maxStoredBytes, sessions*maxSessionBytes); e.bytes > most {
			t.Errorf("%d sessions: %d bytes are stored of %d", sessions, e.bytes, most)
		}
		if again := newTestCarrier(); !last.attach(again, last.sent) {
			t.Error("a client with all events cannot resume")
		} else if frames, _, ok := last.next(again); len(frames) > 0 || !ok {
			t.Errorf("got %d events again", len(frames))
		}
	}
}

func TestEventStore_retention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEventStore(time.Minute)
		old, carried := newTestStream(e, "pa", "one"), newTestStream(e, "pb", "one")
		old.add(frame(1))
		carried.add(frame(1))
		carried.attached.Store(true)
		time.Sleep(50 * time.Second)
		young := newTestStream(e, "pc", "one")
		young.add(frame(1))
		time.Sleep(20 * time.Second)
		if synctest.Wait(); e.has(old) || !e.has(carried) || !e.has(young) {
			t.Error("the evicted stream is not the old one")
		}
		carried.attached.Store(false)
		time.Sleep(3 * time.Minute)
		if synctest.Wait(); len(e.byID) > 0 || e.bytes != 0 || e.sweeping {
			t.Errorf("%d streams of %d bytes are stored", len(e.byID), e.bytes)
		}
	})
}

func TestStream_dropsOldestEvents(t *testing.T) {
	s := newTestStream(newEventStore(time.Hour), "pa", "one")
	for range 20 {
		s.add(frame(100 << 10))
	}
	c := newTestCarrier()
	if s.attach(c, 1) {
		t.Error("the stream was resumed before a dropped event")
	}
	if s.bytes > maxStreamBytes || !s.attach(c, s.first-1) || !s.attach(newTestCarrier(), 20) || s.attach(c, 21) {
		t.Errorf("%d bytes are stored from event %d on", s.bytes, s.first)
	}
}

func TestStream_sendBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestStream(newEventStore(time.Hour), "pa", "one")
		c := newTestCarrier()
		s.attach(c, 0)
		sent := 0
		go func() {
			for sent < 10 {
				_ = s.send(frame(200 << 10))
				sent++
			}
		}()
		if synctest.Wait(); sent != 2 {
			t.Errorf("%d events were sent without blocking", sent)
		}
		s.markSent(c, frame(200<<10))
		if synctest.Wait(); sent != 3 {
			t.Errorf("%d events were sent after one was delivered", sent)
		}
		s.detach(c)
		if synctest.Wait(); sent != 10 || s.bytes > maxStreamBytes {
			t.Errorf("%d events were sent, and %d bytes are stored", sent, s.bytes)
		}
		s.finish(mcp.Reply{})
		if s.send(frame(1)) == nil {
			t.Error("an event was sent after the end")
		}
	})
}

func TestStream_keepsUnsentEvents(t *testing.T) {
	s := newTestStream(newEventStore(time.Hour), "pa", "one")
	c := newTestCarrier()
	s.attach(c, 0)
	for range 2 {
		if err := s.send(frame(100 << 10)); err != nil {
			t.Fatal(err)
		}
	}
	s.finish(mcp.Reply{Frame: frame(2 << 20)})
	if frames, done, ok := s.next(c); len(frames) != 3 || !done || !ok {
		t.Errorf("%d events to send: %v, %v", len(frames), done, ok)
	}
}
